"""The stdio transport: a child process as a server we connect to, and our own stdin and stdout as an endpoint."""

from polyplex.transports.stdio.child import ChildProcess
from polyplex.transports.stdio.endpoint import StdioEndpointTransport
from polyplex.transports.stdio.environment import safe_environment
from polyplex.transports.stdio.process_group import ExitReason, ExitStatus

__all__ = ["ChildProcess", "ExitReason", "ExitStatus", "StdioEndpointTransport", "safe_environment"]
