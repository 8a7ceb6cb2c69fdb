"""Clients of polyplex: stdio and HTTP endpoints, their sessions and streams.

Above: `gateway`, which hands in the functions to call. Never knows `upstreams`.
"""
