"""Servers behind polyplex: one supervised session each, pooled by era, capabilities and isolation.

Above: `gateway`, which hands in the functions to call for asks and notifications. Never knows `downstream`.
"""
