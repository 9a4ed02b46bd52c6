"""Transcripts that others wrote: each dialect becomes turns, one at a time, however large the file.

Facts about each dialect stand in its module. What cannot be understood is counted, never fatal.
"""
