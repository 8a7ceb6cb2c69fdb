"""Where the contents of a result are: blocks of tools, messages of prompts, contents of resources. No I/O."""

import binascii
import re
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json, mend_surrogates

MEMBERS: Final = {"tools/call": "content", "prompts/get": "messages", "resources/read": "contents"}
_LONGEST_NAME: Final = 80
_UNFIT: Final = re.compile(r"[^\w.-]+")
_decode_list = msgspec.json.Decoder(list[Fields]).decode
_decode_text = msgspec.json.Decoder(str).decode


class Body(NamedTuple):
    """The content in an item: under `key` of its innermost object. `is_text`, else base64 data.

    `path` are the members that lead there from the item; `uri` and `media_type` are what it says of itself.
    """

    path: tuple[str, ...]
    key: str
    raw: Raw
    is_text: bool
    media_type: str | None
    uri: str | None

    @property
    def size(self) -> int:
        """Bytes of the content as it is written in the result."""
        return memoryview(self.raw).nbytes - 2


def items_of(raw: Raw | None) -> list[Fields] | None:
    """The members of a list of objects; None for anything else."""
    if raw is None:
        return None
    try:
        return _decode_list(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def list_of(items: list[bytes]) -> Raw:
    """The list of these members."""
    return Raw(b"[" + b",".join(items) + b"]")


def body_of(member: str, fields: Fields) -> Body | None:
    """The content of an item of a list; None where it has none that could be large."""
    try:
        if member == "contents":
            return _of_contents(fields, ())
        if member == "content":
            return _of_block(fields, ())
        block = fields.get("content")
        return None if block is None else _of_block(decode_fields(block), ("content",))
    except RemoteProtocolError:
        return None


def _of_block(fields: Fields, path: tuple[str, ...]) -> Body | None:
    if "resource" in fields:
        return _of_contents(decode_fields(fields["resource"]), (*path, "resource"))
    for key in ("text", "data"):
        raw = fields.get(key)
        if raw is not None and _is_string(raw):
            return Body(path, key, raw, key == "text", text_of(fields.get("mimeType")), None)
    return None


def _of_contents(fields: Fields, path: tuple[str, ...]) -> Body | None:
    for key in ("text", "blob"):
        raw = fields.get(key)
        if raw is not None and _is_string(raw):
            declared, uri = text_of(fields.get("mimeType")), text_of(fields.get("uri"))
            return Body(path, key, raw, key == "text", declared, uri)
    return None


def _is_string(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b'"'


def text_of(raw: Raw | None) -> str | None:
    """A JSON string as text; None for anything else."""
    try:
        return None if raw is None else _decode_text(raw)
    except msgspec.DecodeError:
        return None


def text_in(body: Body) -> str:
    """The text; half a surrogate pair becomes U+FFFD, as everywhere."""
    try:
        return _decode_text(body.raw)
    except msgspec.DecodeError:
        return _decode_text(mend_surrogates(bytes(body.raw)))


def data_in(body: Body) -> tuple[bytes, bool]:
    """The bytes of the content, and whether they are decoded: base64 that is none stays as it is written."""
    text = text_in(body)
    if body.is_text:
        return text.encode(), True
    plain = "".join(text.split()).translate({45: 43, 95: 47})
    try:
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True), True
    except (binascii.Error, ValueError):
        return text.encode(), False


def with_text(item: Fields, body: Body, text: str) -> bytes:
    """The item with another text in the same place."""
    return _replaced(item, body.path, body.key, text)


def _replaced(fields: Fields, path: tuple[str, ...], key: str, text: str) -> bytes:
    if not path:
        return encode_json(fields | {key: Raw(encode_json(text))})
    inner = _replaced(decode_fields(fields[path[0]]), path[1:], key, text)
    return encode_json(fields | {path[0]: Raw(inner)})


def note(member: str, like: Fields | None, text: str, meta: dict[str, Any] | None) -> bytes:
    """An item that is a text of ours, in the place of the item `like`; `meta` where the client's revision has it."""
    fields: Fields = like or {}
    if member == "contents":
        named = {"uri": fields["uri"]} if "uri" in fields else {"uri": "polyplex://notice"}
        return encode_json(named | {"mimeType": "text/plain", "text": text} | _meta(fields, meta))
    around = fields
    if member == "messages":
        content = fields.get("content", Raw(b"{}"))
        around = decode_fields(content) if bytes(memoryview(content)[:1]) == b"{" else {}
    kept = {"annotations": around["annotations"]} if "annotations" in around else {}
    block: dict[str, Any] = {"type": "text", "text": text} | kept | _meta(around, meta)
    if member == "content":
        return encode_json(block)
    return encode_json({"role": fields.get("role", "user"), "content": block})


def _meta(like: Fields, meta: dict[str, Any] | None) -> dict[str, Any]:
    """The `_meta` that an item had, with ours."""
    own = like.get("_meta")
    known: Fields = decode_fields(own) if own is not None and bytes(memoryview(own)[:1]) == b"{" else {}
    both: dict[str, Any] = {**known, **(meta or {})}
    return {"_meta": both} if both else {}


def file_name(uri: str | None, origin: str, media_type: str) -> str:
    """A name for a payload: the last part of its own URI, or the tool's name with an extension."""
    last = "" if uri is None else uri.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]
    name = _UNFIT.sub("-", last).strip("-.")
    if not name:
        name = (_UNFIT.sub("-", origin.rpartition("__")[2]).strip("-.") or "result") + _EXTENSIONS.get(media_type, "")
    return name[-_LONGEST_NAME:]


_EXTENSIONS: Final = {
    "application/json": ".json",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "application/xml": ".xml",
    "text/xml": ".xml",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
}
