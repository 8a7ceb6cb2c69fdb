"""What a resource holds, and a prompt says, as the content of a tool result.

A server's content passes as it came where a tool result may have it; what has no form there, or is broken, becomes
text.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw

from polyplex.catalog.signatures import as_object, decoded
from polyplex.protocol.jsonrpc import Fields, encode_json

Block = Raw | dict[str, Any]
_TEXTS: Final = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}
"""The members of each kind of content that must be texts."""


def of_resource(fields: Fields) -> list[Block]:
    """Of a `resources/read` result: text as text, images and sound as what they are, all else as embedded resources."""
    return [_of_item(raw) for raw in _raw_list(fields.get("contents"))]


def of_prompt(fields: Fields) -> list[Block]:
    """Of a `prompts/get` result: texts with the role before them where there are several messages, the rest as is."""
    messages = _raw_list(fields.get("messages"))
    content: list[Block] = []
    for raw in messages:
        message = _members(raw)
        block = message.get("content")
        for each in _raw_list(block) if block is not None and bytes(block)[:1] == b"[" else [block or raw]:
            sound = _sound(each)
            text = decoded(bytes(each)).get("text")
            if len(messages) == 1 or sound is not each or not isinstance(text, str):
                content.append(sound)
            else:
                content.append({"type": "text", "text": f"{_role(message)}: {text}"})
    return content


def _of_item(raw: Raw) -> Block:
    item = decoded(bytes(raw))
    kind = str(item.get("mimeType") or "")
    if isinstance(item.get("text"), str):
        return {"type": "text", "text": item["text"]}
    if isinstance(item.get("blob"), str) and kind.startswith(("image/", "audio/")):
        return {"type": kind[:5], "data": item["blob"], "mimeType": kind}
    return {"type": "resource", "resource": raw} if _is_resource(item) else _as_text(raw)


def _sound(raw: Raw) -> Block:
    """A block as it came where it is one."""
    block = decoded(bytes(raw))
    wanted = _TEXTS.get(str(block.get("type")))
    if wanted is None or not all(isinstance(block.get(name), str) for name in wanted):
        return _as_text(raw)
    if block["type"] == "resource" and not _is_resource(as_object(block.get("resource"))):
        return _as_text(raw)
    return raw


def _is_resource(item: dict[str, Any]) -> bool:
    return isinstance(item.get("uri"), str) and isinstance(item.get("text", item.get("blob")), str)


def _as_text(raw: Raw) -> Block:
    try:
        value: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        value = None
    text = value if isinstance(value, str) else bytes(raw).decode("utf-8", "replace")
    return {"type": "text", "text": text}


def _members(raw: Raw) -> Fields:
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _role(message: Fields) -> str:
    role = decoded(encode_json({"role": message.get("role")})).get("role")
    return role if isinstance(role, str) else "user"


def _raw_list(raw: Raw | None) -> list[Raw]:
    try:
        return [] if raw is None else msgspec.json.decode(raw, type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        return []
