"""Briefings: the text that an agent is shown at session start and with each prompt."""
