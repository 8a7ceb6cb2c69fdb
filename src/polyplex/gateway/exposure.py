"""Which tools a client is listed: all, or only those that are pinned beside the tools that find and call the rest.

The decision depends on the tools, the configuration and the client's profile alone, never on what was listed before: a
list of the modern era must not depend on other requests.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from polyplex.config.model import GatewayOptions, ToolOptions
from polyplex.content.tokens import estimate
from polyplex.gateway.profile import Profile
from polyplex.mux.entries import Entry

_NO_OPTIONS: Final = ToolOptions()


class Shown(NamedTuple):
    """The tools that a client is listed, and whether the others have to be searched for."""

    entries: Sequence[Entry]
    searching: bool


class _Offered(msgspec.Struct):
    """What of an entry reaches a model."""

    name: Raw
    description: Raw = Raw(b"")
    inputSchema: Raw = Raw(b"")


def listed_tokens(entry: Entry) -> int:
    """About what a tool costs where it is listed: clients give models its name, its description and its schema."""
    try:
        offered = msgspec.json.decode(entry.raw, type=_Offered)
    except (msgspec.DecodeError, RecursionError):
        return estimate(entry.raw)
    return estimate(
        b'{"name":%b,"description":%b,"input_schema":%b}'
        % tuple(map(bytes, (offered.name, offered.description, offered.inputSchema)))
    )


class Exposure:
    """Decides for one configuration. `builtins` gives the built-in tools to list."""

    def __init__(self, options: GatewayOptions, builtins: Callable[[Profile, bool], list[Entry]]) -> None:
        self._options = options
        self._builtins = builtins
        patterns = "|".join(f"(?:{fnmatch.translate(pattern)})" for pattern in options.pinned_tools)
        self._pinned = re.compile(patterns) if patterns else None

    def searching(self, entries: Sequence[Entry], profile: Profile) -> bool:
        """Whether a client of this profile has to search for these tools."""
        if profile.expose != "auto":
            return profile.expose == "search"
        left = self._options.tool_budget_tokens
        for entry in entries:
            left -= listed_tokens(entry)
            if left < 0:
                return True
        return False

    def shown(self, entries: Sequence[Entry], profile: Profile) -> Shown:
        """What to list of all these tools, built-in ones first: clients that cut long lists cut the end."""
        searching = self.searching(entries, profile)
        listed = [entry for entry in entries if self.pinned(entry)] if searching else list(entries)
        own = self._builtins(profile, searching) if profile.builtins else []
        names = {entry.key for entry in own}
        return Shown([*own, *(entry for entry in listed if entry.key not in names)], searching)

    def lists_builtins(self, profile: Profile) -> bool:
        """Whether built-in tools are listed for this profile, or will be once there are tools enough."""
        return profile.builtins and bool(self._builtins(profile, profile.expose != "all"))

    def pinned(self, entry: Entry) -> bool:
        """Whether a tool is listed even where tools are searched for."""
        if self._pinned is not None and self._pinned.match(entry.key):
            return True
        server = self._options.servers.get(entry.server)
        return server is not None and server.tools.get(entry.local, _NO_OPTIONS).pinned
