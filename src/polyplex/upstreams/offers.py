"""What one server offers: its lists as it gave them, and as clients see them."""

import logging

from polyplex.mux.entries import Entry, Naming, SetAside, read_entry
from polyplex.upstreams.lists import Listing
from polyplex.upstreams.patterns import Patterns

log = logging.getLogger("polyplex.upstreams")


class Offers:
    """By member (`tools`, ...): `lists` are the entries offered, `listings` what came, `set_aside` the rest."""

    __slots__ = ("_naming", "_patterns", "listings", "lists", "set_aside")

    def __init__(self, naming: Naming, patterns: Patterns) -> None:
        self._naming = naming
        self._patterns = patterns
        self.lists: dict[str, list[Entry]] = {}
        self.listings: dict[str, Listing] = {}
        self.set_aside: list[SetAside] = []

    def store(self, member: str, listing: Listing, *, modern_http: bool) -> None:
        """Take a list in. Entries that cannot be offered are set aside with a reason; their siblings stay."""
        entries: list[Entry] = []
        aside = [item for item in self.set_aside if not item.reason.endswith(f"[{member}]")]
        keys: set[str] = set()
        for raw in listing.entries:
            entry = read_entry(member, raw, self._naming, modern_http=modern_http)
            if isinstance(entry, SetAside):
                aside.append(SetAside(entry.server, entry.name, f"{entry.reason} [{member}]"))
                log.warning("%s: set aside %r of %s: %s", entry.server, entry.name, member, entry.reason)
            elif entry.key not in keys and (member != "tools" or self._patterns.allows(entry.local)):
                keys.add(entry.key)
                entries.append(entry)
        if listing.failure is not None:
            aside.append(SetAside(self._naming.server, f"the rest of {member}", f"{listing.failure} [{member}]"))
        self.listings[member], self.lists[member], self.set_aside = listing, entries, aside
