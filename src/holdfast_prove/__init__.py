"""Proof that memory arrives: a real client program in a private home, a model server on loopback, and what reached it."""
