"""MCP server: tools, resources and prompts, each of which calls one method of Memory."""
