"""Which project a folder belongs to: override, git remote, marker or path."""
