"""Protect writes and answers: validation, secrets, hidden characters, escaping and trust."""
