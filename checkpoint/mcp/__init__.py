"""The MCP door: the same actions as tools of a server over stdio. It adds no rule of its own.

Only `checkpoint.mcp.main` is imported from elsewhere; the SDK, whose import takes long, is imported when it serves.
"""
