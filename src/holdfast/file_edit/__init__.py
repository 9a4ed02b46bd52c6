"""Edit other programs' files: Holdfast's part is added and removed, every other byte stays."""
