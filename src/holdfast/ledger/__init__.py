"""Durable records that are not prose: audit log, agents, usage, purges; ids and digests, no text."""
