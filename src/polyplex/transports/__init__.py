"""Bytes in and out: stdio, HTTP with and without event streams. Each transport's client and server half.

Above: `upstreams` and `downstream`, which alone open transports. Below: `protocol`. Transports know frames, not MCP.
"""
