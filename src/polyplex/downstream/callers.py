"""Who sends a request."""

from polyplex.downstream.session import LOCAL
from polyplex.transports.http_request import Request


def caller_of(request: Request) -> str:
    """The caller behind an HTTP request: whoever reaches the endpoint is the local caller, without authentication."""
    return LOCAL
