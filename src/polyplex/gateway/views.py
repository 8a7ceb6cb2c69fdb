"""Merged lists: what one client sees of all servers, rendered once and kept until something changes."""

import hashlib
from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from polyplex.gateway import instructions
from polyplex.gateway.exposure import Exposure, Shown
from polyplex.gateway.profile import Profile
from polyplex.mux import cursors
from polyplex.mux.entries import Entry
from polyplex.mux.router import Routes
from polyplex.protocol.bridge.results import finish
from polyplex.protocol.bridge.schemas import tool_for_legacy
from polyplex.protocol.bridge.tasks import shown_tool
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json
from polyplex.protocol.revisions import LIST_METHODS, Era
from polyplex.upstreams.lists import DEFAULT_TTL_MS
from polyplex.upstreams.pool import Binding, Pool
from polyplex.upstreams.upstream import Upstream

PAGE_ENTRIES: Final = 1000
PAGE_BYTES: Final = 4 * 1024 * 1024
MAX_VIEWS: Final = 256
FULL: Final[dict[str, object]] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


class View:
    """The lists of a set of upstreams at one moment, with their routes."""

    def __init__(self, upstreams: tuple[Upstream, ...], exposure: Exposure, *, vary: bool = False) -> None:
        """`vary` where lists may differ by the client's name, so that no cache may share them."""
        self.upstreams = upstreams
        self._exposure = exposure
        self._shown: dict[Profile, Shown] = {}
        self._counts: dict[str, int] | None = None
        members = LIST_METHODS.values()
        lists: dict[str, list[Entry]] = {
            member: [entry for upstream in upstreams for entry in upstream.lists.get(member, ())] for member in members
        }
        owners = [upstream.config.name for upstream in upstreams if _has(upstream, "resources")]
        self.routes = Routes(lists, [upstream.naming for upstream in upstreams], owners)
        peers = ((upstream.config.name, upstream.peer) for upstream in upstreams)
        self._peers = {name: peer for name, peer in peers if peer is not None}
        self.content: bytes | None = None  # what the search index calls these lists
        self._digests: dict[tuple[str, Profile | None], bytes] = {}
        self._pages: dict[tuple[str, Profile | None, int, Era, bool], bytes] = {}
        self._ttl: dict[str, tuple[int, str]] = {member: _caching(upstreams, member) for member in members}
        if vary:
            self._ttl["tools"] = (self._ttl["tools"][0], "private")

    def shown(self, profile: Profile) -> Shown:
        """The tools that a client of this profile is listed."""
        shown = self._shown.get(profile)
        if shown is None:
            shown = self._shown[profile] = self._exposure.shown(self.routes.tools.entries, profile)
        return shown

    def entries(self, member: str, profile: Profile | None = None) -> Sequence[Entry]:
        """The entries of a list: as a profile sees them, or (None) all that servers offer."""
        if member == "tools" and profile is not None:
            return self.shown(profile).entries
        return self.routes.listed(member).entries

    def page(
        self, method: str, cursor: str | None, era: Era, *, tasks: bool = False, profile: Profile | None = None
    ) -> bytes:
        """One page of a list result, for a client that knows core tasks or not.

        Raises `RpcError` -32602 for a cursor that is not ours.
        """
        member = LIST_METHODS[method]
        entries = self.entries(member, profile)
        start = 0 if cursor is None else _position(method, entries, cursor)
        key = (member, profile if member == "tools" else None, start, era, tasks)
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = self._render(method, key, entries)
        return page

    def _render(self, method: str, key: tuple[str, Profile | None, int, Era, bool], entries: Sequence[Entry]) -> bytes:
        member, profile, start, era, tasks = key
        size, end = 0, start
        while end < len(entries) and end - start < PAGE_ENTRIES and (size < PAGE_BYTES or end == start):
            size += len(entries[end].raw)
            end += 1
        shown = (self.form(member, entry, era, tasks) for entry in entries[start:end])
        fields: Fields = {member: Raw(b"[" + b",".join(shown) + b"]")}
        if end < len(entries):
            fields["nextCursor"] = Raw(encode_json(cursors.seal(method, entries[end - 1].key, end)))
        ttl, scope = self._ttl[member]
        if profile is not None and (not profile.builtins or self.shown(profile).searching):
            scope = "private"  # another polyplex is listed something else
        return finish(method, fields, ttl, scope) if era is Era.MODERN else encode_json(fields)

    def form(self, member: str, entry: Entry, era: Era, tasks: bool) -> bytes:
        """An entry in the form that an era allows: legacy clients may get the tools of modern servers in another.

        Whether a tool can be called as a task depends on who asks, too.
        """
        peer = self._peers.get(entry.server) if member == "tools" else None
        if peer is None:
            return entry.raw
        raw = tool_for_legacy(entry.raw) if peer.era is Era.MODERN and era is Era.LEGACY else entry.raw
        return shown_tool(raw, entry.tasks, peer.era, able=peer.tasks, tasks=tasks)

    def has_tasks(self, *, unknown: bool = False) -> bool:
        """Whether a server makes tasks of tool calls; `unknown` is what one counts as that has not said yet."""
        return any(unknown if each.peer is None else each.peer.tasks for each in self.upstreams)

    def digest(self, member: str, profile: Profile | None = None) -> bytes:
        """Equal for equal lists, as a profile sees them or (None) as servers offer them."""
        key = (member, profile if member == "tools" else None)
        digest = self._digests.get(key)
        if digest is None:
            hasher = hashlib.blake2b(digest_size=16)
            for entry in self.entries(member, profile):
                hasher.update(entry.raw)
            digest = self._digests[key] = hasher.digest()
        return digest

    def capabilities(self, profile: Profile | None = None) -> dict[str, object]:
        """The union of what the servers and polyplex offer; everything where one of them is not known yet."""
        own = profile is not None and self._exposure.lists_builtins(profile)
        union: dict[str, object] = {"tools": FULL["tools"]} if own else {}
        for upstream in self.upstreams:
            if upstream.peer is None:
                return FULL
            for name in FULL:
                if name in upstream.peer.capabilities:
                    union[name] = FULL[name]
        return {name: union[name] for name in FULL if name in union} if self.upstreams else {"tools": FULL["tools"]}

    def extensions(self, member: str) -> dict[str, Raw]:
        """The union of the servers' `extensions` or `experimental` capabilities."""
        merged: dict[str, Raw] = {}
        for upstream in self.upstreams:
            raw = None if upstream.peer is None else upstream.peer.capabilities.get(member)
            if raw is not None and bytes(raw)[:1] == b"{":
                merged |= decode_fields(raw)
        return merged

    def server_texts(self) -> dict[str, str]:
        """The instructions of the servers that have some, by name."""
        peers = self._peers.items()
        return {name: peer.instructions for name, peer in peers if peer.instructions}

    def instructions(self, profile: Profile) -> str | None:
        """The servers' instructions, each under its name; bounded where tools are searched for."""
        texts = self.server_texts()
        shown = self.shown(profile)
        if shown.searching and profile.builtins:
            return instructions.for_search(len(self.routes.tools.entries), self.tool_counts(), texts)
        if len(texts) == 1 and len(self.upstreams) == 1:
            return next(iter(texts.values()))
        return "\n\n".join(f"# {name}\n{text}" for name, text in texts.items()) or None

    def tool_counts(self) -> dict[str, int]:
        """How many tools each server offers."""
        if self._counts is None:
            self._counts = dict.fromkeys((upstream.config.name for upstream in self.upstreams), 0)
            for entry in self.routes.tools.entries:
                self._counts[entry.server] += 1
        return self._counts


def _position(method: str, entries: Sequence[Entry], cursor: str) -> int:
    """Where a page starts: after the entry that the cursor names, wherever that stands by now."""
    after, offset = cursors.unseal(method, cursor)
    if 0 < offset <= len(entries) and entries[offset - 1].key == after:
        return offset
    for index, entry in enumerate(entries):
        if entry.key == after:
            return index + 1
    return min(offset, len(entries))


def _has(upstream: Upstream, capability: str) -> bool:
    return upstream.peer is not None and capability in upstream.peer.capabilities


def _caching(upstreams: tuple[Upstream, ...], member: str) -> tuple[int, str]:
    """The least `ttlMs` of the parts; `private` where one part is. Legacy servers notify, so a default will do."""
    listings = [upstream.listings[member] for upstream in upstreams if member in upstream.listings]
    ttl = min((DEFAULT_TTL_MS if listing.ttl_ms is None else listing.ttl_ms for listing in listings), default=0)
    missing = len(listings) < len(upstreams)
    private = any(listing.private for listing in listings)
    return (0 if missing else ttl), ("private" if private else "public")


class Views:
    """All views in use, shared by clients that see the same upstreams."""

    def __init__(self, pool: Pool, exposure: Exposure, *, vary: bool = False) -> None:
        self._pool = pool
        self._exposure = exposure
        self._vary = vary
        self.version = 0
        self._views: dict[tuple[int, ...], View] = {}

    def changed(self) -> None:
        """Something was listed anew: views are made again when needed."""
        self.version += 1
        self._views.clear()

    def view(self, binding: Binding) -> View:
        """The view of a client with this binding."""
        pool = self._pool
        seen = [pool.seen(server, binding) or server.base for server in pool.servers.values()]
        upstreams = tuple(upstream for upstream in seen if upstream is not None)
        key = tuple(map(id, upstreams))
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            view = self._views[key] = View(upstreams, self._exposure, vary=self._vary)
        return view
