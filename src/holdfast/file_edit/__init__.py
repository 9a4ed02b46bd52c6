"""Editing files that belong to somebody else: a part of ours goes in and comes out, every other byte stays as it was."""
