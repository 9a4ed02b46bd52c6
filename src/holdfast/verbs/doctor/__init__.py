"""Doctor: check a home or a store for problems, each with the command that fixes it."""
