"""The source of truth: notes, files and transcripts. The only package that writes, moves or deletes them on disk."""
