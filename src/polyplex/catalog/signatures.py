"""A tool in one line: its name, its parameters with their types, and what it does. Never fails, always bounded."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from polyplex.mux.entries import Entry

MAX_PARAMETERS: Final = 24
MAX_SIGNATURE: Final = 700
MAX_SUMMARY: Final = 240
MAX_CHOICES: Final = 8
MAX_READ: Final = 64  # of choices; hostile schemas have a million
MAX_CHOICE: Final = 40
MAX_NAME: Final = 80
MAX_DEPTH: Final = 3
MAX_REFERENCES: Final = 8
# What steers terminals and turns the direction of a text has no place in a line that a model or a person reads.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_SPACE: Final = re.compile(r"\s+")
# "e.g. this" ends no sentence.
_SENTENCE: Final = re.compile(r"(?<=.{4})[.!?](?=\s+[^\sa-z])|[。！？]")
Json = dict[str, Any]


def decoded(raw: bytes) -> Json:
    """The members of an entry; none where it cannot be read."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return as_object(value)


def compact(entry: Entry) -> str:
    """`name(path: string, head?: integer) – Reads a file.`"""
    fields = decoded(entry.raw)
    told = summary(fields)
    return f"{signature(entry.key, fields)} – {told}" if told else signature(entry.key, fields)


def signature(name: str, fields: Json) -> str:
    """The name with the parameters of a tool's input schema, or of a prompt's arguments; required ones first."""
    if "inputSchema" in fields:
        parameters = _Types(as_object(fields["inputSchema"])).parameters()
    else:
        parameters = [_argument(as_object(each)) for each in as_list(fields.get("arguments"))]
    shown: list[str] = []
    room = MAX_SIGNATURE - len(name)
    for text in parameters[:MAX_PARAMETERS]:
        room -= len(text) + 2
        if room < 0:
            break
        shown.append(text)
    if len(shown) < len(parameters):
        shown.append(f"… {len(parameters) - len(shown)} more")
    return f"{name}({', '.join(shown)})"


def summary(fields: Json) -> str:
    """What an entry is for: the first sentence of its description, or else its title."""
    text = one_line(str(fields.get("description") or ""), 4 * MAX_SUMMARY) or one_line(str(fields.get("title") or ""))
    end = _SENTENCE.search(text)
    return shortened(text if end is None else text[: end.end()], MAX_SUMMARY)


def one_line(text: str, limit: int = MAX_SUMMARY) -> str:
    """A text without line breaks and control characters, in at most so many characters."""
    return shortened(_SPACE.sub(" ", _CONTROLS.sub("", text[: 4 * limit])).strip(), limit)


def shortened(text: str, limit: int) -> str:
    """The beginning of a text, to the end of a word."""
    if len(text) <= limit:
        return text
    head, _, rest = text[: limit - 1].rpartition(" ")
    return (head if len(head) > limit // 2 else f"{head} {rest}".strip()) + "…"


def as_object(value: object) -> Json:
    """The value where it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def type_of(schema: object, root: object) -> str:
    """The type of a value in a few words, as signatures write it."""
    return _Types(as_object(root)).text(schema, 1)


def _argument(argument: Json) -> str:
    name = _name(str(argument.get("name", "")))
    return name if argument.get("required") is True else f"{name}?"


class _Types:
    """Writes the types of one schema; `$ref` is followed within it, a bounded number of times."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = MAX_REFERENCES * 8

    def parameters(self) -> list[str]:
        return self._members(self._root, 0)

    def _members(self, schema: Json, depth: int) -> list[str]:
        properties = as_object(schema.get("properties"))
        required = {name for name in as_list(schema.get("required")) if isinstance(name, str)}
        names = sorted(properties, key=lambda name: name not in required)
        return [self._member(name, properties[name], name in required, depth) for name in names]

    def _member(self, name: str, schema: object, required: bool, depth: int) -> str:
        text = f"{_name(name)}{'' if required else '?'}: {self.text(schema, depth + 1)}"
        default = as_object(schema).get("default")
        if default is None or isinstance(default, dict | list):
            return text
        written = json.dumps(default, ensure_ascii=False)
        return f"{text} = {written}" if len(written) <= MAX_CHOICE // 2 else text

    def text(self, schema: object, depth: int) -> str:
        """The type of one schema."""
        known = self._resolved(as_object(schema))
        if "const" in known:
            return _choice(known["const"])
        choices = as_list(known.get("enum"))
        if choices:
            return _joined([_choice(value) for value in choices[:MAX_READ]], MAX_CHOICES)
        for key in ("anyOf", "oneOf"):
            branches = as_list(known.get(key))
            if branches and depth < MAX_DEPTH + 2:
                return _joined([self.text(branch, depth + 1) for branch in branches[: MAX_CHOICES + 1]], MAX_CHOICES)
        kinds = known.get("type")
        if isinstance(kinds, list):
            return _joined(
                [self._kind(str(kind), known, depth) for kind in cast("list[object]", kinds)[:MAX_READ]], MAX_CHOICES
            )
        return self._kind(kinds if isinstance(kinds, str) else _guessed(known), known, depth)

    def _kind(self, kind: str, schema: Json, depth: int) -> str:
        if kind == "array":
            items = schema.get("items")
            inner = self.text(items, depth + 1) if items and depth < MAX_DEPTH else "any"
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        if kind == "object" and depth < MAX_DEPTH:
            members = self._members(schema, depth)
            if members and sum(map(len, members)) <= MAX_SIGNATURE // 2:
                return "{" + ", ".join(members) + "}"
        form = schema.get("format")
        return f"{kind}({form[:20]})" if kind == "string" and isinstance(form, str) else kind[:20]

    def _resolved(self, schema: Json) -> Json:
        """The schema behind a `$ref` within the document; where it cannot be followed, what is beside it."""
        for _ in range(MAX_REFERENCES):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#") or self._left == 0:
                break
            self._left -= 1
            found: object = self._root
            for part in reference[1:].split("/")[1:]:
                found = as_object(found).get(part.replace("~1", "/").replace("~0", "~"))
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = as_object(found) | beside
        return schema


def _guessed(schema: Json) -> str:
    """The type of a schema that names none."""
    return "object" if "properties" in schema else "array" if "items" in schema else "any"


def _joined(texts: Sequence[str], limit: int) -> str:
    different = list(dict.fromkeys(texts))
    shown = different[:limit]
    return "|".join(shown if len(different) <= limit else [*shown, "…"])


def _choice(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CHOICE else f"{text[: MAX_CHOICE - 1]}…"


def _name(name: str) -> str:
    """A parameter's name on one line; what would not read as a name is quoted."""
    if re.fullmatch(r"[^\W\d][\w.$-]*", name) and len(name) <= MAX_NAME:
        return name
    return json.dumps(name[:MAX_NAME], ensure_ascii=False)
