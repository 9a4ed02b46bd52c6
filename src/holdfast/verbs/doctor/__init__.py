"""Checks for problems and the command that fixes each one."""
