"""Logging and metrics. Knows nothing of MCP."""

from polyplex.telemetry.log import configure_logging
from polyplex.telemetry.metrics import Registry
from polyplex.telemetry.redact import redact

__all__ = ["Registry", "configure_logging", "redact"]
