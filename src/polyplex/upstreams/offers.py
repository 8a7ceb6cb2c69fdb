"""What one server offers: its lists as it gave them, and as clients see them."""

import logging
from collections.abc import Mapping

from polyplex.config.model import ToolOptions
from polyplex.errors import RemoteProtocolError
from polyplex.mux.entries import NO_OPTIONS, Entry, Naming, SetAside, read_entry
from polyplex.mux.overrides import unknown_parameters
from polyplex.protocol.jsonrpc import decode_fields, decode_text
from polyplex.upstreams.lists import Listing
from polyplex.upstreams.patterns import Patterns

log = logging.getLogger("polyplex.upstreams")


class Offers:
    """By member (`tools`, ...): `lists` are the entries offered, `listings` what came, `set_aside` the rest."""

    __slots__ = ("_naming", "_patterns", "_tools", "_unknown", "listings", "lists", "set_aside")

    def __init__(self, naming: Naming, patterns: Patterns, tools: Mapping[str, ToolOptions] = NO_OPTIONS) -> None:
        self._naming = naming
        self._patterns = patterns
        self._tools = tools
        self._unknown: tuple[str, ...] = ()
        self.lists: dict[str, list[Entry]] = {}
        self.listings: dict[str, Listing] = {}
        self.set_aside: list[SetAside] = []

    def store(self, member: str, listing: Listing, *, modern_http: bool) -> None:
        """Take a list in. Entries that cannot be offered are set aside with a reason; their siblings stay."""
        entries: list[Entry] = []
        aside = [item for item in self.set_aside if not item.reason.endswith(f"[{member}]")]
        keys: dict[str, str] = {}
        for raw in listing.entries:
            entry = read_entry(member, raw, self._naming, modern_http=modern_http, options=self._tools)
            if isinstance(entry, SetAside):
                aside.append(SetAside(entry.server, entry.name, f"{entry.reason} [{member}]"))
                log.warning("%s: set aside %r of %s: %s", entry.server, entry.name, member, entry.reason)
            elif member == "tools" and not self._patterns.allows(entry.local):
                continue
            elif entry.key not in keys:
                keys[entry.key] = entry.local
                entries.append(entry)
            elif keys[entry.key] != entry.local:
                reason = f"its name {entry.key!r} is that of the tool {keys[entry.key]!r}; configure another one"
                aside.append(SetAside(entry.server, entry.local, f"{reason} [{member}]"))
                log.warning("%s: set aside %r of %s: %s", entry.server, entry.local, member, reason)
        if listing.failure is not None:
            aside.append(SetAside(self._naming.server, f"the rest of {member}", f"{listing.failure} [{member}]"))
        self.listings[member], self.lists[member], self.set_aside = listing, entries, aside
        if member == "tools" and self._tools:
            self._warn_unknown(listing)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What the configuration says of tools and parameters that the server does not have."""
        return self._unknown

    def _warn_unknown(self, listing: Listing) -> None:
        """Name them in the log, once for each state of the list."""
        names = [(_name(raw), raw) for raw in listing.entries]
        known = dict(names)
        unknown = [f"there is no tool {name!r}" for name in self._tools if name not in known]
        for name, options in self._tools.items():
            if name in known:
                missing = unknown_parameters(known[name], options)
                unknown += [f"the tool {name!r} has no parameter {path!r}" for path in missing]
        if tuple(unknown) != self._unknown:
            self._unknown = tuple(unknown)
            for text in unknown:
                log.warning("%s: %s, of which polyplex.servers speaks", self._naming.server, text)


def _name(raw: bytes) -> str:
    try:
        return decode_text(decode_fields(raw)["name"])
    except (RemoteProtocolError, KeyError):
        return ""
