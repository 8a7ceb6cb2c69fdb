"""Results of MCP tools as the messages in which each provider expects them."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from polyplex.catalog.export.calls import ModelCall
from polyplex.catalog.export.dialects import Dialect

_IMAGES: Final = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_PDF: Final = "application/pdf"
_SPELLINGS: Final = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


def result_message(dialect: Dialect, call: ModelCall, result: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a call: a message of the Chat Completions API, an input item of the Responses API, a `tool_result`
    block of the Messages API, a part with a `functionResponse` of the Gemini API.

    Pictures go where the provider takes them, and are named in words elsewhere; a link stays a link in words.
    """
    blocks = _blocks(result)
    if dialect.provider == "anthropic":
        content = [_anthropic(block) for block in blocks]
        message: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": content}
        return message | ({"is_error": True} if result.get("isError") is True else {})
    if dialect.provider == "gemini":
        return _gemini(call, result, blocks)
    failed = "The tool failed: " if result.get("isError") is True else ""
    if dialect.form == "responses" and any(_media(block)[0] in (_IMAGES | {_PDF}) for block in blocks):
        output = [_responses(block) for block in blocks]
        output = [{"type": "input_text", "text": failed.rstrip()}, *output] if failed else output
        return {"type": "function_call_output", "call_id": call.id, "output": output}
    text = failed + _text(blocks)
    if dialect.form == "responses":
        return {"type": "function_call_output", "call_id": call.id, "output": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def _blocks(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = result.get("content")
    blocks = [
        cast("dict[str, Any]", block) for block in cast("list[Any]", content) if isinstance(block, dict)
    ] if isinstance(content, list) else []  # fmt: skip
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        blocks.insert(0, {"type": "text", "text": json.dumps(structured, ensure_ascii=False)})
    return blocks


def _media(block: dict[str, Any]) -> tuple[str, str]:
    """Media type and base64 of a block; empty where it holds no bytes."""
    held = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(held, dict):
        return "", ""
    fields = cast("dict[str, Any]", held)
    data = fields.get("data", fields.get("blob"))
    kind = _string(fields.get("mimeType")).partition(";")[0].strip().lower()
    return (_SPELLINGS.get(kind, kind), data) if isinstance(data, str) else ("", "")


def _words(block: dict[str, Any]) -> str:
    """A block as text."""
    kind = block.get("type")
    if kind == "text":
        return _string(block.get("text"))
    if kind == "resource_link":
        known = (_string(block.get(key)) for key in ("title", "name", "description", "mimeType"))
        size = block.get("size")
        facts = [fact for fact in (*known, f"{size} bytes" if isinstance(size, int) else "") if fact]
        return (
            f"{_string(block.get('uri'))} ({', '.join(dict.fromkeys(facts))})" if facts else _string(block.get("uri"))
        )
    if kind == "resource" and isinstance(block.get("resource"), dict):
        held = cast("dict[str, Any]", block["resource"])
        if isinstance(held.get("text"), str):
            return held["text"]
    media, data = _media(block)
    if data:
        return f"[{media or _string(kind)}, {len(data) * 3 // 4} bytes, which cannot be shown here]"
    return json.dumps(block, ensure_ascii=False)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text(blocks: list[dict[str, Any]]) -> str:
    return "\n\n".join(_words(block) for block in blocks)


def _anthropic(block: dict[str, Any]) -> dict[str, Any]:
    media, data = _media(block)
    if media in _IMAGES:
        return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
    if media == _PDF:
        return {"type": "document", "source": {"type": "base64", "media_type": media, "data": data}}
    # An empty text block is refused.
    return {"type": "text", "text": _words(block) or " "}


def _responses(block: dict[str, Any]) -> dict[str, Any]:
    media, data = _media(block)
    if media in _IMAGES:
        return {"type": "input_image", "image_url": f"data:{media};base64,{data}", "detail": "auto"}
    if media == _PDF:
        return {"type": "input_file", "filename": "result.pdf", "file_data": f"data:{media};base64,{data}"}
    return {"type": "input_text", "text": _words(block)}


def _gemini(call: ModelCall, result: Mapping[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    shown = [block for block in blocks if _media(block)[0] in (_IMAGES | {_PDF})]
    rest = [block for block in blocks if block not in shown]
    structured = result.get("structuredContent")
    key = "error" if result.get("isError") is True else "output"
    # The API takes a `$ref` anywhere in a response for a name of a part, and refuses the request.
    usable = isinstance(structured, dict) and "$ref" not in json.dumps(structured)
    response: dict[str, Any] = {"name": call.name, "response": {key: structured if usable else _text(rest)}}
    if call.id:
        response["id"] = call.id
    if shown:
        pairs = map(_media, shown)
        response["parts"] = [{"inlineData": {"mimeType": media, "data": data}} for media, data in pairs]
    return {"functionResponse": response}
