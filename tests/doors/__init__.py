"""The doors besides the JSON lines: MCP and Python, and that all of them answer alike."""
