"""One result made small enough for a model: what is large is stored and described, what is long is cut.

Whatever is not shown is a payload first; where none can be made, the error leaves the result as it came.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw, Struct

from polyplex.content import budget, notices
from polyplex.content.cut import cut
from polyplex.content.notices import NOTICE_TOKENS, READ_TOOL
from polyplex.content.tokens import estimate
from polyplex.gateway.results import shapes, words
from polyplex.gateway.results.keeper import JSON, META_PAYLOAD, Keeper, Part
from polyplex.gateway.results.limits import Limits
from polyplex.gateway.results.shapes import Body
from polyplex.gateway.results.structured import Structured
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json

SUMMARY_TOKENS: Final = 600
MOST_MARK_BYTES: Final = 200
LEAST_WITH_TAIL: Final = 400
MOST_NOTICES_BYTES: Final = 64 * 1024

# A summary of a payload in at most so many tokens, and who wrote it; None for none.
Summarise = Callable[[Part, int], Awaitable[tuple[str, str] | None]]


class Order(Struct, frozen=True):
    """What a result is to be made for: `origin` is the tool, prompt or resource, `links` and `metas` are whether the
    client's revision has resource links, and `_meta` in contents. `output_schema` is the raw one of the tool."""

    method: str
    owner: str
    origin: str
    limits: Limits
    links: bool
    metas: bool
    output_schema: bytes | None
    summarise: Summarise


class Item(Struct, frozen=True):
    """A member of the list of contents; `ours` stands for what is stored."""

    fields: Fields
    ours: bool = False

    @property
    def raw(self) -> bytes:
        """The member as JSON; a copy of all of it."""
        return encode_json(self.fields)

    @property
    def size(self) -> int:
        """Its bytes, about."""
        return sum(memoryview(value).nbytes + len(key) + 4 for key, value in self.fields.items())


class Reshaper:
    """Works on one result. `parts` were stored while it came in, `members` of it as a whole."""

    def __init__(self, keeper: Keeper, order: Order, parts: Mapping[str, Part], members: Mapping[str, str]) -> None:
        self._keeper = keeper
        self._order = order
        self._limits = order.limits
        self._member = shapes.MEMBERS[order.method]
        self._parts = parts
        self._members = members
        self._told: set[str] = set()
        self._stored_bytes = sum(part.payload.size for part in parts.values())

    async def run(self, result: bytes) -> bytes:
        """The result within its limits; the same bytes where it is already. Raises `PayloadError`."""
        fields = decode_fields(result)
        raw = fields.get(self._member)
        items = await self._contents(raw)
        changed = items is not None and any(item.ours for item in items)
        if items is not None:
            fitted = await self._fit(await self._few(await self._store_large(items)))
            changed = changed or fitted != items
        else:
            fitted = []
        if self._order.method == "tools/call":
            moved = await self._structured(fields, fitted)
            changed, fitted = changed or moved is not None, fitted + (moved or [])
        if self._parts:
            changed = await self._other_members(fields, fitted) or changed
            changed = await self._untold(fitted) or changed
        if not changed:
            return result
        if items is None and raw is not None and raw != b"null":  # no list of objects: it has to make room for ours
            fitted = await self._described(await self._put(bytes(raw), JSON), None, what=self._member) + fitted
        return encode_json(fields | {self._member: shapes.list_of([item.raw for item in fitted])})

    async def _contents(self, raw: Raw | None) -> list[Item] | None:
        """The items; those of a list that was stored as a whole are one that stands for them."""
        part = self._member_part(raw)
        if part is not None:
            return await self._described(part, None, what="The list of contents")
        items = shapes.items_of(raw)
        return None if items is None else [Item(item) for item in items]

    def _member_part(self, raw: Raw | None) -> Part | None:
        """The part that a member of the result stands for, where it went out whole."""
        if not self._members or raw is None or memoryview(raw).nbytes > MOST_MARK_BYTES:
            return None
        written = bytes(raw)
        return next((self._parts.get(mark) for mark in self._members if mark.encode() in written), None)

    # -- what is large
    async def _store_large(self, items: list[Item]) -> list[Item]:
        out: list[Item] = []
        for item in items:
            body = None if item.ours else shapes.body_of(self._member, item.fields)
            part = None if body is None else await self._large(body)
            out += [item] if part is None else await self._described(part, item.fields, body)
        return out

    async def _large(self, body: Body) -> Part | None:
        part = self._parts.get(shapes.text_of(body.raw) or "") if self._parts and body.size < 200 else None
        if part is not None or body.size <= self._limits.inline:
            return part
        data, decoded = shapes.data_in(body)
        if body.is_text and len(data) <= self._limits.inline:
            return None  # it is its escapes that are large
        return await self._put(data, body.media_type if decoded else "text/plain", self._limits.preview_tokens)

    async def _put(self, data: bytes, declared: str | None, tokens: int = 0) -> Part:
        self._stored_bytes += len(data)
        self._keeper.store.check(self._stored_bytes)  # or the last would push out the first of the same result
        return await self._keeper.keep(self._order.owner, data, self._order.origin, declared, tokens)

    async def _described(
        self, part: Part, like: Fields | None, body: Body | None = None, *, what: str = ""
    ) -> list[Item]:
        """What stands for a stored content: its shape, a summary where one is wanted, and a link."""
        payload, tokens = part.payload, self._limits.tokens
        shape = part.shape
        summary = await self._order.summarise(part, min(SUMMARY_TOKENS, tokens // 4))
        if summary is not None:
            shape = f"{shape}\n\n{words.summarised(*summary)}"
        if not what and body is not None and body.uri is not None:
            what = body.uri[:200]
        text = words.stored(self._keeper.uri_of(payload), payload, shape, what)
        return self._noted(text, part, like, None if body is None else body.uri)

    def _noted(self, text: str, part: Part, like: Fields | None, uri: str | None = None, **more: Any) -> list[Item]:
        """A text of ours and the link beside it, as far as the client's revision has them."""
        self._told.add(part.payload.id)
        links = self._order.links and self._member == "content"
        meta = {META_PAYLOAD: self._keeper.describe(part.payload, **more)} if self._order.metas and not links else None
        items = [Item(decode_fields(shapes.note(self._member, like, text, meta)), True)]
        return [*items, Item(decode_fields(self._link(part, uri, **more)), True)] if links else items

    def _link(self, part: Part, uri: str | None, **more: Any) -> bytes:
        payload = part.payload
        return encode_json(
            {
                "type": "resource_link",
                "uri": self._keeper.uri_of(payload),
                "name": shapes.file_name(uri, self._order.origin, payload.media_type),
                "mimeType": payload.media_type,
                "size": payload.size,
                "description": f"Read it in parts with {READ_TOOL}.",
                "_meta": {META_PAYLOAD: self._keeper.describe(payload, **more)},
            }
        )

    # -- what is many
    async def _few(self, items: list[Item]) -> list[Item]:
        """Items that are small each, and too much together: the first ones stay, the list is stored."""
        own = sum(item.size for item in items if item.ours)
        own = (
            own if own <= MOST_NOTICES_BYTES else 0
        )  # they say what is behind them: not hidden but where they are many
        if len(items) < 2 or sum(item.size for item in items) - own <= self._limits.inline:
            return items
        size, tokens, fitting = self._limits.inline // 2, self._limits.tokens - NOTICE_TOKENS, 0
        for item in items:
            size -= 0 if own and item.ours else item.size
            tokens -= estimate(item.raw) if size >= 0 else 0
            if size < 0 or tokens < 0:
                break
            fitting += 1
        return [*items[:fitting], *await self._listed(items, fitting)]

    async def _listed(self, items: list[Item], shown: int) -> list[Item]:
        """What stands for all items from `shown` on. The list is stored whole, so that places in it are the same."""
        part = await self._put(bytes(shapes.list_of([item.raw for item in items])), JSON)
        what = "messages" if self._member == "messages" else "contents"
        return self._noted(words.listed(self._keeper.uri_of(part.payload), shown, len(items), what), part, None)

    def _tokens(self, items: list[Item]) -> int:
        return sum(estimate(item.raw) if item.ours else budget.weigh(item.raw).tokens for item in items)

    # -- what is long
    async def _fit(self, items: list[Item]) -> list[Item]:
        """Within the tokens: the longest are cut, or moved out where they cannot be."""
        if sum(item.size for item in items) <= self._limits.tokens or self._tokens(items) <= self._limits.tokens:
            return items
        ours = [item.ours for item in items]
        weights = [budget.weigh(item.raw) for item in items]
        weights = [
            budget.Weight(weight.tokens, weight.cuttable and not own) for weight, own in zip(weights, ours, strict=True)
        ]
        plan = budget.share(weights, self._limits.tokens)
        out: list[Item] = []
        for item, share in zip(items, plan.shares, strict=False):
            out += await self._shared(item, share)
        return out if plan.rest is None else out + await self._listed(items, plan.rest)

    async def _shared(self, item: Item, share: budget.Share) -> list[Item]:
        """One item with its share."""
        if item.ours or share.action == "keep":
            return [item]
        body = shapes.body_of(self._member, item.fields)
        if body is None:
            return await self._described(await self._put(item.raw, JSON, share.max_tokens), item.fields)
        if share.action == "cut" and body.is_text:
            return await self._cut(item, body, share.max_tokens)
        data, decoded = shapes.data_in(body)
        part = await self._put(data, body.media_type if decoded else "text/plain", share.max_tokens)
        return await self._described(part, item.fields, body)

    async def _cut(self, item: Item, body: Body, max_tokens: int) -> list[Item]:
        """The beginning of a text (and its end, where that helps), and how to read on."""
        text = shapes.text_in(body)
        part = await self._put(text.encode(), body.media_type)
        payload, uri = part.payload, self._keeper.uri_of(part.payload)
        room = max(max_tokens - NOTICE_TOKENS * (2 if self._order.links else 1), 20)
        summary = await self._order.summarise(part, room // 3)
        room -= 0 if summary is None else room // 3
        found = cut(text, room, media_type=payload.media_type, tail=room >= LEAST_WITH_TAIL and summary is None)
        if found.whole:
            return [item]
        notice = notices.cut_notice(found, uri)
        if summary is not None:
            notice = f"{notice}\n{words.summarised(*summary)}"
        more = {"shown": notices.shown_fields(found, None)}
        if found.kind == "json" and payload.media_type == JSON:  # what is JSON stays JSON
            kept = Item(decode_fields(shapes.with_text(item.fields, body, found.kept)), True)
            return [kept, *self._noted(notice, part, item.fields, body.uri, **more)]
        shown = "\n".join(filter(None, (found.kept, notice, found.tail)))
        kept = Item(decode_fields(shapes.with_text(item.fields, body, shown)), True)
        linked = self._order.links and self._member == "content"
        return [kept, Item(decode_fields(self._link(part, body.uri, **more)), True)] if linked else [kept]

    # -- the rest of the result
    async def _structured(self, fields: Fields, items: list[Item]) -> list[Item] | None:
        """Structured content within the limits; what is said of it in the contents, None where nothing was to do."""
        raw = fields.get("structuredContent")
        if raw is None:
            return None
        part = self._member_part(raw)
        large = memoryview(raw).nbytes > self._limits.inline
        if (
            part is None
            and not large
            and (memoryview(raw).nbytes <= self._limits.tokens or estimate(bytes(raw)) <= self._limits.tokens)
        ):
            return None
        part = part or await self._put(bytes(raw), JSON, self._limits.preview_tokens)
        smaller = await Structured(self._keeper, self._order.owner, self._order.output_schema).smaller(
            part, self._limits
        )
        meta = self._keeper.describe(part.payload, of="structuredContent")
        if smaller is None:
            del fields["structuredContent"]
        else:
            fields["structuredContent"] = Raw(smaller.raw)
            meta["cut"] = list(smaller.cut)
        _add_meta(fields, META_PAYLOAD, meta)
        uri = self._keeper.uri_of(part.payload)
        told = any(item.ours for item in items)  # then the texts say already what is in it
        if smaller is None and not told:
            return await self._described(part, None, what="structuredContent")
        text = words.structured(uri, part.payload) if smaller is None else notices.shrunk_notice(smaller.cut, uri)
        noted = self._noted(text, part, None, of="structuredContent")
        return noted[:1] if told else noted

    async def _other_members(self, fields: Fields, items: list[Item]) -> bool:
        """Members that went out whole and are no contents: they are named, and no longer in the result."""
        gone = False
        for mark, member in self._members.items():
            part = self._parts.get(mark)
            if part is None or member in (self._member, "structuredContent") or member not in fields:
                continue
            del fields[member]
            items += await self._described(part, None, what=member[:80])
            gone = True
        return gone

    async def _untold(self, items: list[Item]) -> bool:
        """Parts of what is no content after all, such as a list with other things than objects in it."""
        untold = [part for part in self._parts.values() if part.payload.id not in self._told]
        for part in untold:
            items += await self._described(part, None)
        return bool(untold)


def _add_meta(fields: Fields, key: str, value: object) -> None:
    raw = fields.get("_meta")
    meta = decode_fields(raw) if raw is not None and bytes(memoryview(raw)[:1]) == b"{" else {}
    fields["_meta"] = Raw(encode_json(meta | {key: Raw(encode_json(value))}))
