"""The search index behind a client's lists: built in a thread, kept while the lists last, changed as they change."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from polyplex.catalog.documents import document
from polyplex.catalog.search.types import Document, Found, Kind
from polyplex.config import SearchOptions, cache_dir
from polyplex.errors import MissingExtraError, SearchUnavailable
from polyplex.gateway.views import View
from polyplex.mux.entries import Entry
from polyplex.protocol.revisions import LIST_METHODS
from polyplex.transports.background import Background

if TYPE_CHECKING:
    from polyplex.catalog.search.index import SearchIndex

log = logging.getLogger("polyplex.gateway")
MAX_INDEXES: Final = 8
WAIT_SECONDS: Final = 20.0
UPDATE_SECONDS: Final = 2.0
MAX_QUERY: Final = 2000
MEMBER_OF: Final[dict[Kind, str]] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "template": "resourceTemplates",
}
Allowed = Callable[[Entry], bool]


class Match(NamedTuple):
    """Entries that fit a query, best first, and whether they are a good fit or just the nearest there are."""

    entries: list[Entry]
    confident: bool


class _Kept:
    """One index: what it is of, whose lists those were, and the update under way. `first` is done once it is there."""

    __slots__ = ("content", "first", "index", "lineage", "update")

    def __init__(self, lineage: tuple[int, ...]) -> None:
        self.lineage = lineage
        self.content = b""
        self.index: SearchIndex | None = None
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.update: asyncio.Task[None] | None = None

    def offer(self, index: "SearchIndex | None") -> None:
        """Searches use this index from now on; None where none could be built."""
        self.index = index
        if not self.first.done():
            self.first.set_result(None)


class Finder:
    """All indexes. Views with equal lists share one; at most `MAX_INDEXES` are kept, the least used go first."""

    def __init__(self, options: SearchOptions) -> None:
        self._options = options
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._background = Background()

    def prepare(self, view: View) -> None:
        """Have the index of a view built in the background, where it is not there yet."""
        self._of(view)

    async def find(
        self,
        view: View,
        query: str,
        k: int,
        *,
        kind: Kind = "tool",
        server: str | None = None,
        allowed: Allowed | None = None,
        seconds: float | None = WAIT_SECONDS,
    ) -> Match:
        """The `k` entries of a view that fit best; `server` and `allowed` filter before anything is ranked.

        An index that is not there yet is waited for, at most so many `seconds`. Raises `SearchUnavailable`.
        """
        index = await self._ready(self._of(view), seconds)
        known = view.routes.listed(MEMBER_OF[kind]).by_key
        # An index may be a moment ahead of a view, or behind: nothing is given but what the view has.
        allows = known.keys() if allowed is None else {key for key, entry in known.items() if allowed(entry)}
        found: Found = await asyncio.to_thread(
            index.search, query[:MAX_QUERY], k, kind=kind, server=server, allowed=allows
        )
        return Match([known[hit.key] for hit in found.hits if hit.key in known], found.confident)

    async def _ready(self, kept: _Kept, seconds: float | None) -> "SearchIndex":
        """The index; one that is just being brought up to date serves as it was, unless that is soon done."""
        if kept.index is None:
            await asyncio.wait([kept.first], timeout=seconds)
        elif kept.update is not None:
            await asyncio.wait([kept.update], timeout=UPDATE_SECONDS)
        if kept.index is None:
            why = "could not be built; see the log" if kept.first.done() else "is still being built; try again soon"
            raise SearchUnavailable(f"The search index {why}.")
        return kept.index

    def _of(self, view: View) -> _Kept:
        """The index of a view: one of the same content, or that of the same servers, brought up to date."""
        content = _content(view)
        kept = self._kept.get(content)
        if kept is not None:
            self._kept.move_to_end(content)
            return kept
        lineage = tuple(map(id, view.upstreams))
        kept = next((each for each in self._kept.values() if each.lineage == lineage), None)
        if kept is None:
            kept = _Kept(lineage)
        else:
            del self._kept[kept.content]
        kept.content = content
        self._kept[content] = kept
        while len(self._kept) > MAX_INDEXES:
            self._kept.popitem(last=False)
        kept.update = self._background.start(self._updated(kept, view, kept.update))
        return kept

    async def _updated(self, kept: _Kept, view: View, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait([before])
        if kept.content != _content(view):  # overtaken by a newer list
            return
        lists = {member: view.routes.listed(member).entries for member in LIST_METHODS.values()}
        texts = view.server_texts()
        try:
            index = kept.index
            if index is None:
                index = await asyncio.to_thread(self._opened)
                if self._options.embedder == "minilm":  # it reads slowly: until it is done, the words it knows serve
                    kept.offer(await asyncio.to_thread(_filled, await asyncio.to_thread(_plain), lists, texts))
            kept.offer(await asyncio.to_thread(_filled, index, lists, texts))
        except Exception:
            log.exception("the search index could not be built")
            kept.offer(kept.index)

    def _opened(self) -> "SearchIndex":
        """An empty index with what the configuration asks for; in a thread."""
        from polyplex.catalog.search.index import open_index

        try:
            return open_index(self._options, cache_dir())
        except MissingExtraError as error:
            log.warning("search goes on without the embedder: %s", error)
            return open_index(msgspec.structs.replace(self._options, embedder="static"))

    async def stop(self) -> None:
        """Nobody waits any more; what a thread is just building, it builds to its end."""
        self._background.cancel()
        await self._background.finish()


def _content(view: View) -> bytes:
    """Equal for views with equal lists and server texts."""
    if view.content is None:
        hasher = hashlib.blake2b(digest_size=16)
        for member in LIST_METHODS.values():
            hasher.update(view.digest(member))
        for name, text in view.server_texts().items():
            hasher.update(f"{len(name)}:{name}{len(text)}:{text}".encode("utf-8", "surrogatepass"))
        view.content = hasher.digest()
    return view.content


def _plain() -> "SearchIndex":
    """An empty index with the vectors that polyplex carries; in a thread."""
    from polyplex.catalog.search.index import open_index

    return open_index(SearchOptions())


def _filled(index: "SearchIndex", lists: dict[str, list[Entry]], texts: dict[str, str]) -> "SearchIndex":
    """Bring an index up to date; in a thread."""
    documents: list[Document] = [
        document(member, entry, texts.get(entry.server, "")) for member, entries in lists.items() for entry in entries
    ]
    index.update(documents)
    return index
