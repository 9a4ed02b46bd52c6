"""THE TRUTH. The only room that opens, renames or unlinks a memory."""
