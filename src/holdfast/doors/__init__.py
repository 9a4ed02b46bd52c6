"""The doors: each turns one request into one verb of Memory, and its answer back. No logic of their own."""
