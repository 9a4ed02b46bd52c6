"""Source of truth: notes, files and transcripts on disk, and the only code that changes them."""
