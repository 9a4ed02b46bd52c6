"""The MCP door: an agent's tools, resources and prompts, each turned into one verb of Memory, on the official SDK."""
