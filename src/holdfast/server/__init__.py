"""The HTTP server: `holdfast serve`."""
