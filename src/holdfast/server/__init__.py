"""HTTP server: an API with tokens and roles, one route per method of Memory, and MCP on the same port."""
