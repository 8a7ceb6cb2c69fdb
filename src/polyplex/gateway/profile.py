"""What is otherwise for one client than for others, by the name that it gives itself (`polyplex.clients`)."""

import fnmatch
import re
from typing import Final

import msgspec

from polyplex.config.model import Expose, GatewayOptions, ResultMode

MAX_NAME_CHARACTERS: Final = 256
OWN_NAME: Final = "polyplex"
"""What polyplex calls itself, as a server and as a client."""


class Profile(msgspec.Struct, frozen=True):
    """How a client sees tools and results. `builtins` is whether built-in tools are listed at all."""

    expose: Expose = "auto"
    results: ResultMode = "bounded"
    builtins: bool = True


class _Info(msgspec.Struct):
    name: str = ""


class Profiles:
    """The profiles of a configuration. There are few, however many names clients think of.

    A client that is polyplex gets all tools and whole results, unless a pattern says otherwise: it has clients of its
    own, and decides for each of them.
    """

    def __init__(self, options: GatewayOptions) -> None:
        self.default = Profile(options.expose, options.results.mode)
        self._patterns = [
            (re.compile(fnmatch.translate(pattern)), client) for pattern, client in options.clients.items()
        ]

    @property
    def vary(self) -> bool:
        """True where lists may differ by the client's name."""
        return any(client.expose is not None for _, client in self._patterns)

    def of(self, client_info: bytes) -> Profile:
        """The profile for a raw `clientInfo`. For each option the first pattern counts that matches and sets it."""
        if not self._patterns and OWN_NAME.encode() not in client_info:
            return self.default
        name = name_of(client_info)
        expose: Expose | None = None
        results: ResultMode | None = None
        for pattern, client in self._patterns:
            if pattern.match(name):
                expose, results = expose or client.expose, results or client.results
        if name == OWN_NAME:
            return Profile(
                expose or "all", results or "raw", builtins=expose in {"search", "auto"} or results == "bounded"
            )
        return Profile(expose or self.default.expose, results or self.default.results)


def name_of(client_info: bytes) -> str:
    """The name in a `clientInfo`; empty where there is none."""
    try:
        return msgspec.json.decode(client_info, type=_Info).name[:MAX_NAME_CHARACTERS]
    except (msgspec.DecodeError, RecursionError):
        return ""
