"""Which results are bounded, and by what: from the configuration, the client, and what the call itself asks for."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from polyplex.config.model import GatewayOptions, ServerConfig, Summary, ToolOptions
from polyplex.downstream.session import Call
from polyplex.gateway.client import Client
from polyplex.mux.router import Target
from polyplex.protocol.bridge.requests import read_meta
from polyplex.protocol.jsonrpc import Fields, decode_fields

UNREACHED: Final = 1 << 30
PREVIEW_TOKENS: Final = 300
META_RESULTS: Final = "polyplex/results"
META_SUMMARY: Final = "polyplex/summary"
META_FOCUS: Final = "polyplex/focus"
MAX_FOCUS_CHARACTERS: Final = 500
_MARK: Final = b"polyplex/"
_MOST_BYTES_PER_TOKEN: Final = 16
_LEAST_APART: Final = 64 * 1024
_NOTHING: Final = ToolOptions()


class Limits(Struct, frozen=True):
    """`inline` is in bytes, `tokens` in tokens, `UNREACHED` for no limit.

    What has no more than `least` bytes cannot be over either: no token is less than a byte.
    """

    inline: int
    tokens: int
    summary: Summary = "none"
    focus: str | None = None

    @property
    def least(self) -> int:
        """Results up to so many bytes need not be looked at."""
        return min(self.inline, self.tokens)

    @property
    def apart(self) -> int:
        """Contents of more than so many bytes are over one of the limits for certain, and stored as they come in."""
        return min(self.inline, max(self.tokens * _MOST_BYTES_PER_TOKEN, _LEAST_APART))

    @property
    def preview_tokens(self) -> int:
        """What the preview of one content may cost."""
        return min(PREVIEW_TOKENS, max(self.tokens // 2, 40))


class Limiter:
    """The limits of each call: `usual` ones, or those of its tool. `least` is the least of all that are configured."""

    def __init__(self, options: GatewayOptions, servers: Mapping[str, ServerConfig]) -> None:
        self._servers = servers
        self._raw = options.results.mode == "raw"
        self.usual = Limits(
            options.payloads.inline_limit_bytes or UNREACHED,
            options.results.max_tokens or UNREACHED,
            options.results.summary,
        )
        self._known: dict[tuple[str, str], Limits] = {}
        tools = [tool for server in servers.values() for tool in server.options.tools.values()]
        modes = [server.options.results for server in servers.values()] + [tool.results for tool in tools]
        modes += [client.results for client in options.clients.values()]
        self.least = min([self.usual.least, *(tool.max_tokens or UNREACHED for tool in tools)])
        if self._raw and "bounded" not in modes:
            self.least = UNREACHED

    @property
    def off(self) -> bool:
        """True where nothing is ever bounded."""
        return self.least >= UNREACHED

    def of(self, call: Call, client: Client, target: Target) -> Limits | None:
        """The limits of a call's result; None where it stays as it is."""
        asked: Fields = {}
        if call.params is not None and _MARK in call.params:
            asked = {key: raw for key, raw in _meta_of(call).items() if key.startswith("polyplex/")}
        mode = _text(asked.get(META_RESULTS))
        if mode != "bounded" and (mode == "raw" or self._is_raw(client, target)):
            return None
        limits = self._of_tool(target)
        if META_SUMMARY in asked or META_FOCUS in asked:
            limits = _asked(limits, asked)
        return limits if limits.least < UNREACHED else None

    def _is_raw(self, client: Client, target: Target) -> bool:
        server = self._servers.get(target.server)
        if server is not None:
            tool = self.tool(target)
            mode = tool.results or server.options.results
            if mode is not None and (mode == "raw" or self._raw):
                return mode == "raw"
        return client.profile.results == "raw"

    def tool(self, target: Target) -> ToolOptions:
        """What is configured for a tool."""
        server = self._servers.get(target.server)
        return _NOTHING if server is None else server.options.tools.get(target.local, _NOTHING)

    def _of_tool(self, target: Target) -> Limits:
        tool = self.tool(target)
        if tool.max_tokens is None and tool.summary is None:
            return self.usual
        key = (target.server, target.local)
        limits = self._known.get(key)
        if limits is None:
            usual = self.usual
            limits = Limits(usual.inline, tool.max_tokens or usual.tokens, tool.summary or usual.summary)
            self._known[key] = limits
        return limits


def _meta_of(call: Call) -> Fields:
    return read_meta(decode_fields(call.params or b"{}"))


def _asked(limits: Limits, asked: Fields) -> Limits:
    summary = _text(asked.get(META_SUMMARY)) or limits.summary
    focus = _text(asked.get(META_FOCUS))
    if summary not in ("none", "extractive", "client"):
        summary = limits.summary
    return Limits(limits.inline, limits.tokens, summary, None if focus is None else focus[:MAX_FOCUS_CHARACTERS])


def _text(raw: Raw | None) -> str | None:
    try:
        return None if raw is None else msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return None
