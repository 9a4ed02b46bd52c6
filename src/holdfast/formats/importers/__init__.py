"""Parse the transcripts of other programs into turns, one at a time, however large the file.

Each module describes the dialect of one program. Items that cannot be read are counted and skipped.
"""
