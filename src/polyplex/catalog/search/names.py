"""Names that a query means outright: exactly, in another spelling, or with a slip of the pen."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from polyplex.catalog.search.words import STOP_WORDS, split, stem

EXACT: Final = 3
LOCAL: Final = 2
NEAR: Final = 1
MAX_NAME: Final = 80
MAX_WORDS: Final = 8
_RUN: Final = re.compile(r"[A-Za-z0-9_\-./:]+")
_JOINED: Final = re.compile(r"[_\-./:]|[a-z0-9][A-Z]")
# `mcp__files__read_file`, `functions.read_file`; a path or an address is no name with a prefix.
_PREFIX: Final = re.compile(r"__|(?<=\w)[/:.](?=\w+[_-]\w+$)")
# Words that say that a tool is meant, and not which.
_MEANING_A_TOOL: Final = frozenset(("call", "function", "functions", "invoke", "tool", "tools", "use", "using"))
_TIERS: Final = 4
LEAST_NEAR: Final = 5
LEAST_FAR: Final = 9
MAX_SEARCHED: Final = 2_000
MAX_IDENTIFIERS: Final = 16


class Label(Struct, frozen=True, gc=False):
    """What a document is called."""

    key: str
    server: str
    name: str
    title: str


class Names:
    """The names of a shelf: by spelling without case and separators, and by stems (those keys begin with a blank).

    Dictionaries of small values, since there are several names to each of ten thousand documents.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int | tuple[int, ...]] = {}
        self._alike: dict[tuple[str, int], set[str]] = {}

    def add(self, slot: int, label: Label) -> None:
        """Know a document by its key, its own name, its title, and its server with its name."""
        for key, tier in _keys(label).items():
            known = self._codes.get(key)
            if known is None:
                self._alike.setdefault((key[0], len(key)), set()).add(key)
            code = slot * _TIERS + tier
            self._codes[key] = code if known is None else (*_several(known), code)

    def remove(self, slot: int, label: Label) -> None:
        """Forget a document that was added as it is."""
        for key in _keys(label):
            rest = tuple(code for code in _several(self._codes[key]) if code // _TIERS != slot)
            if rest:
                self._codes[key] = rest[0] if len(rest) == 1 else rest
            else:
                del self._codes[key]
                self._alike[key[0], len(key)].discard(key)

    def meant(self, query: str, known: Callable[[str], bool]) -> dict[int, int]:
        """The documents that a query names, with how outright it does: `EXACT`, `LOCAL` or `NEAR`.

        `known` tells whether any document has the term. A word that none has may be a slip of the pen.
        """
        query = query.strip()
        found: dict[int, int] = {}
        if len(query) <= MAX_NAME:
            self._raise(found, compact(query))
        identifiers = _identifiers(query[:MAX_SEARCHED])
        for identifier in identifiers:
            self._raise_longest(found, identifier)
        if found or len(query) > MAX_NAME:
            return found
        words = split(query)
        self._raise(found, _stemmed(words))
        if not found:
            self._raise(found, _stemmed(_without_phrase(words)))
        written = identifiers == [query]  # whoever writes a name as names are written means a name
        if not found and len(words) <= MAX_WORDS and (written or not all(known(stem(word)) for word in words)):
            for spelling in self._slips(compact(query)):
                self._raise(found, spelling)
        return dict.fromkeys(found, NEAR)

    def _raise_longest(self, found: dict[int, int], identifier: str) -> None:
        """What an identifier names, or what it names without the prefixes that a client has put before it."""
        for start in (0, *(match.end() for match in _PREFIX.finditer(identifier))):
            key = compact(identifier[start:])
            if key in self._codes:
                self._raise(found, key)
                return

    def _raise(self, found: dict[int, int], key: str) -> None:
        for code in _several(self._codes.get(key, ())):
            slot, tier = divmod(code, _TIERS)
            found[slot] = max(tier, found.get(slot, 0))

    def _slips(self, query: str) -> list[str]:
        """The spellings that are nearest. The first letter must be right: it mostly is, and tells many words apart."""
        allowed = 0 if len(query) < LEAST_NEAR else 1 if len(query) < LEAST_FAR else 2
        letters = set(query)
        best, found = allowed, list[str]()
        for length in range(len(query) - allowed, len(query) + allowed + 1) if allowed else ():
            for spelling in self._alike.get((query[0], length), ()):
                if len(letters.symmetric_difference(spelling)) > 2 * best:
                    continue
                distance = edit_distance(query, spelling, best)
                if distance < best:
                    best, found = distance, [spelling]
                elif distance == best:
                    found.append(spelling)
        return found


def _identifiers(text: str) -> list[str]:
    """What in a text is written as names are: `read_file`, `readFile`, `files/read`."""
    runs = (run.strip("_-./:") for run in _RUN.findall(text))
    return [run for run in runs if len(run) <= MAX_NAME and _JOINED.search(run)][:MAX_IDENTIFIERS]


def _without_phrase(words: Sequence[str]) -> list[str]:
    """The words that may be a name, in a query such as `use the echo tool` or `new page in the browser`.

    One word alone is a name only where the query says that it means a tool: `search for it` means nothing by `search`.
    """
    rest = [word for word in words if word not in STOP_WORDS and word not in _MEANING_A_TOOL]
    return rest if len(rest) > 1 or not _MEANING_A_TOOL.isdisjoint(words) else []


def _several(codes: int | tuple[int, ...]) -> tuple[int, ...]:
    return (codes,) if isinstance(codes, int) else codes


def _keys(label: Label) -> dict[str, int]:
    """The keys of a document's names, with the tier of each."""
    qualified = f"{label.server} {label.name}"
    keys = {
        _stemmed(split(text)): NEAR for text in (label.name, label.title, qualified, f"{label.name} {label.server}")
    }
    keys |= {compact(text): LOCAL for text in (label.name, label.title)}
    keys |= {compact(text): EXACT for text in (label.key, qualified)}
    keys.pop("", None)
    keys.pop(" ", None)
    return keys


def _stemmed(words: Sequence[str]) -> str:
    """The stems of a name in order, so that `reading files` is `read_file`."""
    return " " + " ".join(stem(word) for word in words[:MAX_WORDS])


def compact(text: str) -> str:
    """A name without case, separators and blanks: `Files.read-File` is `filesreadfile`."""
    return "".join(split(text[:MAX_NAME])) if text.isascii() else "".join(text[:MAX_NAME].casefold().split())


def edit_distance(one: str, other: str, limit: int) -> int:
    """Insertions, deletions, changes and swaps of neighbours between two texts; `limit + 1` where there are more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, wanted in enumerate(other, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        if min(now) > limit:
            return limit + 1
        before, last = last, now
    return min(last[-1], limit + 1)
