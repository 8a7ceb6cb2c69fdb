"""Asks of servers in the form that a client's revision has, and their answers in the form of the server's.

Elicitation exists from 2025-06-18; URLs, choices with titles, several choices, tools in sampling and several blocks of
content in one message from 2025-11-25; audio from 2025-03-26.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Fields, decode_fields, encode_json
from polyplex.protocol.revisions import R2025_03_26, R2025_06_18, R2025_11_25

Json = dict[str, Any]
Restore = Callable[[bytes], bytes]
SAMPLING: Final = "sampling/createMessage"
ELICITATION: Final = "elicitation/create"
_TOOL_MARKS: Final = (b'"tools"', b'"toolChoice"', b'"tool_use"', b'"tool_result"')
_SEPARATOR: Final = ", "


def check(method: str, params: bytes | None, capabilities: Fields, revision: str) -> None:
    """Refuse what a client did not declare, or what its revision does not have. Raises `RpcError`.

    `capabilities` are those the client declared; that it declared the one for `method` is known already.
    """
    if method == ELICITATION:
        if revision < R2025_06_18:
            raise RpcError(METHOD_NOT_FOUND, f"the client speaks {revision}, which has no elicitation")
        mode = "url" if _is_url(params) else "form"
        if not _declares(capabilities, "elicitation", mode, revision):
            raise RpcError(INVALID_PARAMS, f"the client does not support elicitation in the mode {mode!r}")
    elif method == SAMPLING and _uses_tools(params) and not _declares(capabilities, "sampling", "tools", revision):
        raise RpcError(INVALID_PARAMS, "the client does not support tools in sampling")


def _is_url(params: bytes | None) -> bool:
    if params is None or b"url" not in params:
        return False
    return decode_fields(params).get("mode") == Raw(b'"url"')


def _declares(capabilities: Fields, capability: str, part: str, revision: str) -> bool:
    """Without any part named, elicitation means forms."""
    raw = capabilities.get(capability)
    try:
        parts = {} if raw is None else decode_fields(raw)
    except RemoteProtocolError:
        parts = {}
    if part == "form":
        return revision < R2025_11_25 or "form" in parts or "url" not in parts
    return revision >= R2025_11_25 and part in parts


def _uses_tools(params: bytes | None) -> bool:
    if params is None or not any(mark in params for mark in _TOOL_MARKS):
        return False
    fields = decode_fields(params)
    if "tools" in fields or "toolChoice" in fields:
        return True
    blocks = (block for message in _objects(_load(fields.get("messages"))) for block in _blocks(message))
    return any(block.get("type") in ("tool_use", "tool_result") for block in blocks)


def ask_for(method: str, params: bytes | None, revision: str) -> tuple[bytes | None, Restore | None]:
    """The params for a client of an older revision, and where its answer has to be changed back, what does it."""
    if params is None or revision >= R2025_11_25:
        return params, None
    if method == SAMPLING:
        return _sampling(params, revision), None
    return _form(params) if method == ELICITATION else (params, None)


def answer_for(method: str, result: bytes, revision: str) -> bytes:
    """An answer as a server of an older revision expects it: one block of content, of a type that it knows."""
    if method != SAMPLING or revision >= R2025_11_25:
        return result
    fields = decode_fields(result)
    content = _load(fields.get("content"))
    blocks = _blocks({"content": content})
    if isinstance(content, dict) and all(_known(block, revision) for block in blocks) or not blocks:
        return result
    if len(blocks) == 1 and _known(blocks[0], revision):
        fields["content"] = Raw(encode_json(blocks[0]))
    else:
        text = "\n".join(map(_text, blocks))
        fields["content"] = Raw(encode_json({"type": "text", "text": text}))
    return encode_json(fields)


# -- sampling
def _sampling(params: bytes, revision: str) -> bytes:
    """Several blocks of one message become messages of their own; what the client does not know becomes text."""
    fields = decode_fields(params)
    messages = _load(fields.get("messages"))
    if not isinstance(messages, list) or all(_fits(message, revision) for message in cast("list[Any]", messages)):
        return params
    changed: list[Any] = []
    for message in cast("list[Any]", messages):
        if _fits(message, revision):
            changed.append(message)
        else:
            blocks = (block if _known(block, revision) else _as_text(block) for block in _blocks(message))
            changed += [{**message, "content": block} for block in blocks]
    return encode_json(fields | {"messages": Raw(encode_json(changed))})


def _fits(message: Any, revision: str) -> bool:
    content = cast("Json", message).get("content") if isinstance(message, dict) else None
    return isinstance(content, dict) and _known(cast("Json", content), revision)


def _known(block: Json, revision: str) -> bool:
    return block.get("type") in (("text", "image", "audio") if revision >= R2025_03_26 else ("text", "image"))


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [cast("Json", content)] if isinstance(content, dict) else _objects(content)


def _as_text(block: Json) -> Json:
    return {"type": "text", "text": _text(block)}


def _text(block: Json) -> str:
    """A block as text: nothing of it is lost."""
    if isinstance(block.get("text"), str):
        return block["text"]
    if isinstance(block.get("data"), str):
        return f"data:{block.get('mimeType', '')};base64,{block['data']}"
    return encode_json(block).decode()


# -- forms
def _form(params: bytes) -> tuple[bytes, Restore | None]:
    """Choices with titles get the names of 2025-06-18; several choices become a list in one text."""
    fields = decode_fields(params)
    schema = _load(fields.get("requestedSchema"))
    properties: Any = cast("Json", schema).get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return params, None
    given = cast("Json", properties)
    several = {name for name, each in given.items() if _is_list(each)}
    changed = {name: _several(each) if name in several else _single(each) for name, each in given.items()}
    if changed == given:
        return params, None
    fields["requestedSchema"] = Raw(encode_json({**schema, "properties": changed}))
    return encode_json(fields), (lambda answer: _split(answer, several)) if several else None


def _options(schema: Json, member: str) -> list[tuple[str, str]]:
    """The choices as value and title."""
    titled = _objects(schema.get(member))
    found = [(each.get("const"), each.get("title")) for each in titled] or [
        (each, each) for each in _list(schema, "enum")
    ]
    return [(value, title if isinstance(title, str) else value) for value, title in found if isinstance(value, str)]


def _single(schema: Any) -> Any:
    if not isinstance(schema, dict) or "oneOf" not in schema:
        return cast("Any", schema)
    options = _options(cast("Json", schema), "oneOf")
    kept = {name: value for name, value in cast("Json", schema).items() if name != "oneOf"}
    return kept | {"enum": [value for value, _ in options], "enumNames": [title for _, title in options]}


def _is_list(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("Json", schema).get("type") == "array"


def _several(schema: Json) -> Json:
    items = schema.get("items")
    options = _options(cast("Json", items), "anyOf") if isinstance(items, dict) else []
    choice = _SEPARATOR.join(value if value == title else f"{value} ({title})" for value, title in options)
    said = schema.get("description")
    hint = f"Any of: {choice}. Separate several with commas."
    changed: Json = {"type": "string", "description": f"{said} {hint}" if isinstance(said, str) else hint}
    if isinstance(schema.get("title"), str):
        changed["title"] = schema["title"]
    if "default" in schema:
        changed["default"] = _SEPARATOR.join(map(str, _list(schema, "default")))
    return changed


def _split(answer: bytes, several: Iterable[str]) -> bytes:
    fields = decode_fields(answer)
    content = _load(fields.get("content"))
    if not isinstance(content, dict):
        return answer
    given = cast("Json", content)
    for name in several:
        if isinstance(given.get(name), str):
            given[name] = [part.strip() for part in given[name].split(",") if part.strip()]
    return encode_json(fields | {"content": Raw(encode_json(given))})


# -- reading what may be anything
def _load(raw: Raw | None) -> Any:
    try:
        return None if raw is None else msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _objects(value: Any) -> list[Json]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def _list(schema: Json, member: str) -> list[Any]:
    value = schema.get(member)
    return cast("list[Any]", value) if isinstance(value, list) else []
