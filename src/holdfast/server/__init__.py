"""The HTTP door: an API for agents elsewhere, each route one verb, for whoever has a token and a role that allows it."""
