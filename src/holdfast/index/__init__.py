"""Derived index of keywords and vectors, which is rebuilt from the store."""
