"""Logging and metrics. Knows nothing of MCP."""
