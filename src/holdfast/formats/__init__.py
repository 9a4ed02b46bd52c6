"""File formats: note files and their versions, fact lines, transcripts, and importers of other programs' transcripts."""
