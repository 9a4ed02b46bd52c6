"""The MCP server: tools, resources and prompts, each one verb of Memory, on the official SDK."""
