"""What protects a write or an answer: validation, secrets, hidden characters, escaping and trust."""
