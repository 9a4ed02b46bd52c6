"""THE CATALOGUE. The only room that searches; always rebuilt from the shelf."""
