"""What of a payload is asked for, by a tool's arguments or in a URI, and the answer as text with how to read on."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import parse_qsl

from polyplex.content.notices import read_call
from polyplex.content.tokens import estimate
from polyplex.errors import PayloadQueryError
from polyplex.store.reading.parts import GrepPart, JsonPart
from polyplex.store.reading.reader import DEFAULT_PART_BYTES, MAX_PART_BYTES, PayloadReader

Way = Literal["text", "lines", "page", "json_path", "grep"]
WAYS: Final[tuple[Way, ...]] = ("lines", "page", "json_path", "grep")
NAMES: Final = frozenset({"uri", "offset", "limit", "regex", "ignore_case", "context", "cursor", *WAYS})
DEFAULT_MATCHES: Final = 50
DEFAULT_PAGE: Final = 50
NOTICE_TOKENS: Final = 120
_TRIES: Final = 4
_LINES: Final = re.compile(r"\s*(-?\d{1,15})\s*(?:[-:,–]\s*(\d{1,15}))?\s*")
_WHOLE: Final = re.compile(r"-?\d{1,15}")


class Query(NamedTuple):
    """One way to read, with what belongs to it; `given` are the arguments as they came, for reading on."""

    way: Way
    offset: int
    limit: int | None
    first: int
    text: str
    regex: bool
    ignore_case: bool
    context: int
    cursor: str | None
    given: dict[str, Any]

    @property
    def plain(self) -> bool:
        """True where nothing but the payload is asked for."""
        return self.way == "text" and not self.given


class Answer(NamedTuple):
    """A part of a payload as text; `notice` says which, `onward` are the arguments that read on, None at the end."""

    text: str
    notice: str
    onward: dict[str, Any] | None


def read_query(arguments: Mapping[str, Any]) -> Query:
    """The query in a tool's arguments; numbers may be texts. Raises `PayloadQueryError`."""
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        raise PayloadQueryError(f"unknown argument {unknown[0][:60]!r}; there are {', '.join(sorted(NAMES))}")
    given = {name: value for name, value in arguments.items() if name != "uri" and value is not None}
    ways: list[Way] = [way for way in WAYS if way in given]
    if len(ways) > 1:
        raise PayloadQueryError(f"give only one of {', '.join(ways)}")
    way = ways[0] if ways else "text"
    first, last = 1, None
    if way == "lines":
        first, last = _line_range(given["lines"])
    elif way == "page":
        first = _number(given, "page", 1)
    limit = _number(given, "limit", 0) if "limit" in given else None
    if limit is not None and limit < 1:
        raise PayloadQueryError("limit must be at least 1")
    return Query(
        way,
        _number(given, "offset", 0),
        last - first + 1 if last is not None else limit,
        first,
        str(given[way]) if way in ("json_path", "grep") else "",
        _flag(given, "regex"),
        _flag(given, "ignore_case"),
        _number(given, "context", 0),
        None if "cursor" not in given else str(given["cursor"]),
        given,
    )


def uri_query(uri: str) -> tuple[str, dict[str, Any]]:
    """The payload's own URI, and the arguments behind `?` or `#` in it."""
    for mark in ("?", "#"):
        base, found, rest = uri.partition(mark)
        if found:
            return base, dict(parse_qsl(rest, keep_blank_values=True))
    return uri, {}


def _number(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise PayloadQueryError(f"{name} must be a whole number")
    return value


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    return value is True or (isinstance(value, str) and value.lower() in ("true", "1", ""))


def _line_range(value: object) -> tuple[int, int | None]:
    if isinstance(value, list):
        value = "-".join(str(each) for each in cast("list[object]", value)[:3])
    found = _LINES.fullmatch(str(value))
    if found is None:
        raise PayloadQueryError(
            'lines are "FIRST-LAST", such as "1-100", or one number to begin at; -50 for the last 50'
        )
    first, last = int(found[1]), None if found[2] is None else int(found[2])
    if last is not None and (last < first or first < 1):
        raise PayloadQueryError(f"lines {first}-{last} is no range; the first line is 1")
    return first, last


class Answers:
    """Answers queries about one payload in at most so many tokens; `max_bytes` is the most to be read at once."""

    def __init__(self, reader: PayloadReader, owner: str, identifier: str, max_tokens: int, max_bytes: int) -> None:
        self._reader, self._owner, self._id = reader, owner, identifier
        self._tokens, self._bytes = max_tokens, min(max_bytes, MAX_PART_BYTES)

    async def answer(self, query: Query) -> Answer:
        """The part that was asked for, or as much of it as fits. Raises `PayloadError`."""
        read = {
            "text": self._text,
            "lines": self._lines,
            "page": self._page,
            "json_path": self._json_path,
            "grep": self._grep,
        }[query.way]
        room, most = max(self._tokens - NOTICE_TOKENS, 30), self._bytes
        for _ in range(_TRIES):
            found = await read(query, most)
            tokens = estimate(found.text)
            if tokens <= room:
                break
            size = len(found.text.encode("utf-8", "replace"))
            most = max(16, min(most, size) * room // tokens * 9 // 10)
        return found  # pyright: ignore[reportPossiblyUnboundVariable]

    async def _text(self, query: Query, most: int) -> Answer:
        limit = min(query.limit or most, most)
        part = await self._reader.text(self._owner, self._id, offset=query.offset, limit=limit)
        notice = f"bytes {part.offset:,} to {part.end:,} of {part.size:,}"
        onward = None if part.next_offset is None else _onward(query, offset=part.next_offset)
        return Answer(part.text, notice, onward)

    async def _lines(self, query: Query, most: int) -> Answer:
        count = query.limit or (-query.first if query.first < 0 else 1000)
        part = await self._reader.lines(self._owner, self._id, first=query.first, count=count, max_bytes=most)
        total = "" if part.total is None else f" of {part.total:,}"
        notice = f"lines {part.first:,} to {part.first + max(part.count, 1) - 1:,}{total}"
        if part.cut and part.next_offset is not None:
            return Answer(part.text, f"{notice}, the last one cut", {"offset": part.next_offset})
        onward = None if part.next_line is None else {"lines": _next_lines(query, part.next_line)}
        return Answer(part.text, notice, onward)

    async def _page(self, query: Query, most: int) -> Answer:
        record = None if query.cursor is None else _number({"cursor": query.cursor}, "cursor", 0)
        part = await self._reader.page(
            self._owner,
            self._id,
            query.first,
            page_size=query.limit or DEFAULT_PAGE,
            record=record,
            max_bytes=most,
        )
        total = "" if part.total is None else f" of {part.total:,}"
        where = "" if part.key is None else f" of {part.key!r}"
        notice = f"records {part.first + 1:,} to {part.first + part.count:,}{total}{where}"
        if part.next_offset is not None:
            return Answer(part.text, f"{notice}, cut", {"offset": part.next_offset})
        if part.next_record is None:
            return Answer(part.text, notice, None)
        return Answer(part.text, notice, _onward(query, page=query.first, cursor=str(part.next_record)))

    async def _json_path(self, query: Query, most: int) -> Answer:
        skip = 0 if query.cursor is None else _number({"cursor": query.cursor}, "cursor", 0)
        part = await self._reader.json_path(
            self._owner, self._id, query.text, skip=skip, limit=query.limit or 1000, max_bytes=most
        )
        onward = None if part.next_skip is None else _onward(query, cursor=str(part.next_skip))
        if not part.nodes:
            return Answer("", f"nothing is at {query.text}", onward)
        if part.nodes[-1].cut:
            last = part.nodes[-1]
            notice = f"{_values(part)}; the value at {last.path} is cut, it is bytes {last.offset:,} to {last.end:,}"
            if part.next_skip is not None:
                notice = f"{notice}, the next value has the cursor {part.next_skip}"
            return Answer(_nodes(part), notice, {"offset": last.offset + len(last.raw)})
        return Answer(_nodes(part), _values(part), onward)

    async def _grep(self, query: Query, most: int) -> Answer:
        part = await self._reader.grep(
            self._owner,
            self._id,
            query.text,
            regex=query.regex,
            ignore_case=query.ignore_case,
            context=query.context,
            max_matches=query.limit or DEFAULT_MATCHES,
            max_bytes=most,
            cursor=query.cursor,
        )
        onward = None if part.next_cursor is None else _onward(query, cursor=part.next_cursor)
        lines = "1 line matches" if len(part.matches) == 1 else f"{len(part.matches):,} lines match"
        searched = "" if part.scanned >= part.size else f", searched up to byte {part.scanned:,} of {part.size:,}"
        return Answer(_matches(part), f"{lines}{searched}", onward)


def _onward(query: Query, **changed: Any) -> dict[str, Any]:
    return query.given | changed


def _next_lines(query: Query, line: int) -> str:
    """The rest of a range that was asked for, or as many lines again."""
    if query.limit is None:
        return str(line)
    last = query.first + query.limit - 1
    return f"{line}-{last}" if query.first > 0 and line <= last else f"{line}-{line + query.limit - 1}"


def _values(part: JsonPart) -> str:
    if len(part.nodes) == 1 and part.next_skip is None and not part.skip:
        return f"the value at {part.nodes[0].path}"
    return f"values {part.skip + 1:,} to {part.skip + len(part.nodes):,}"


def _nodes(part: JsonPart) -> str:
    """One value as it is, several as lines with their paths."""
    if len(part.nodes) == 1:
        return part.nodes[0].raw.decode("utf-8", "replace")
    return "\n".join(f"{node.path}: {node.raw.decode('utf-8', 'replace')}" for node in part.nodes)


def _matches(part: GrepPart) -> str:
    """As grep writes it: `12:` for a match, `11-` for what is around it."""
    out: list[str] = []
    for match in part.matches:
        if out and (match.before or match.after):
            out.append("--")
        out += [f"{match.line - len(match.before) + place}-{text}" for place, text in enumerate(match.before)]
        out.append(f"{match.line}:{'…' if match.cut else ''}{match.text}")
        out += [f"{match.line + place}-{text}" for place, text in enumerate(match.after, 1)]
    return "\n".join(out)


def told(answer: Answer, uri: str) -> str:
    """The text for a model: the part, which part it is, and the call that reads on."""
    end = "this is the end" if answer.onward is None else f"read on with {read_call(uri, **answer.onward)}"
    return f"{answer.text}\n[{answer.notice}; {end}]" if answer.text else f"[{answer.notice}; {end}]"


__all__ = ["DEFAULT_PART_BYTES", "Answer", "Answers", "Query", "read_query", "told", "uri_query"]
