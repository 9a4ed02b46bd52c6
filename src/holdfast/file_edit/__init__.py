"""Edits of other programs' JSON, TOML and Markdown files that keep every other byte."""
