"""Arguments against a tool's input schema, with problems told so that a model can mend its call."""

import difflib
import json
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn, Protocol, cast

import msgspec

from polyplex.catalog.effort import effort, is_plain
from polyplex.catalog.signatures import as_list, as_object, one_line, shortened, type_of

MAX_PROBLEMS: Final = 8
MAX_VALUE: Final = 80
MAX_MESSAGE: Final = 300
MAX_NAMES: Final = 200
MAX_KEPT: Final = 1024
MAX_BYTES: Final = 1024 * 1024
# A step that fails costs some 50 µs, and while a check runs nothing else does.
MAX_STEPS: Final = 20_000
MANY_STEPS: Final = 4_000  # more are not gone through for all problems: the first will do
FEW_BYTES: Final = 1024 * 1024  # of a schema times those of arguments: cannot be many steps
BACKTRACKS: Final = 20_000
LONGEST_LIKE: Final = 64
_ROOT: Final = "the arguments"
# What our own limits cause: the value may well be right.
_OURS: Final = frozenset({"BacktrackLimitExceeded", "RegexEngineFailure", "Referencing"})


class _Validator(Protocol):
    def is_valid(self, instance: object) -> bool: ...
    def iter_errors(self, instance: object) -> Iterable[Any]: ...
    def validate(self, instance: object) -> None: ...


class _Compiled(NamedTuple):
    """A schema to check with; `plain` where nothing in it multiplies the work."""

    validator: _Validator
    decoded: object
    plain: bool


class Checker:
    """Checks arguments. Compiled schemas are kept, the least used ones go first; all that is kept is bounded."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, _Compiled | None] = OrderedDict()

    def problems(self, schema: bytes, arguments: bytes, *, strict: bool = False) -> list[str]:
        """What is wrong with raw arguments, a line for each; nothing where the schema itself is broken.

        Arguments that are larger than `MAX_BYTES`, or take more than `MAX_STEPS` to check, are left to the server, as
        are those that cannot be checked: nothing else runs meanwhile. With `strict` either is a problem.
        """
        if len(arguments) > MAX_BYTES:
            return [f"{_ROOT}: larger than {MAX_BYTES} bytes"] if strict else []
        compiled = self._compiled(schema)
        if compiled is None:
            return []
        try:
            value = msgspec.json.decode(arguments)
            few = compiled.plain and len(schema) * len(arguments) < FEW_BYTES
            steps = 0 if few else effort(compiled.decoded, value, MAX_STEPS)
            if steps is None:
                return [f"{_ROOT}: too many to be checked"] if strict else []
            errors = _errors(compiled.validator, value, many=steps > MANY_STEPS)
        except Exception as error:  # noqa: BLE001 - what the checker cannot read, such as huge numbers
            return [f"{_ROOT}: cannot be read: {one_line(str(error))}"] if strict else []
        told = [line for error in errors for line in _told(error, compiled.decoded, value)]
        return list(dict.fromkeys(told))[:MAX_PROBLEMS]

    def _compiled(self, schema: bytes) -> _Compiled | None:
        if schema in self._kept:
            self._kept.move_to_end(schema)
            return self._kept[schema]
        compiled = self._kept[schema] = _compile(schema)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return compiled


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a wrong one may stand for."""
    # Names are compared letter by letter only where they may be alike at all: that takes long for long ones.
    names = list(islice((each for each in known if len(each) <= LONGEST_LIKE), MAX_NAMES))
    name = name[:LONGEST_LIKE]
    folded = {each.lower().replace("_", "").replace("-", ""): each for each in reversed(names)}
    same = folded.get(name.lower().replace("_", "").replace("-", ""))
    return same or next(iter(difflib.get_close_matches(name, names, 1)), None)


def _compile(schema: bytes) -> _Compiled | None:
    import jsonschema_rs

    try:
        decoded = msgspec.json.decode(schema)
        # Nothing is fetched for a schema of a server: it could name any address.
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
        validator = jsonschema_rs.validator_for(decoded, retriever=_refuse, pattern_options=patterns)
        return _Compiled(validator, decoded, is_plain(decoded))
    except Exception:  # noqa: BLE001 - a schema that does not compile checks nothing
        return None


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _errors(validator: _Validator, value: object, *, many: bool) -> list[Any]:
    """The first violations; only the very first where going through all would take long."""
    if validator.is_valid(value):
        return []
    if not many:
        return list(islice(validator.iter_errors(value), MAX_PROBLEMS))
    try:
        validator.validate(value)
    except ValueError as error:
        return [error] if hasattr(error, "instance_path") else []
    return []


def _told(error: Any, schema: object, value: object) -> list[str]:
    """One violation in lines such as `head: expected integer, got "ten"`."""
    path = list(error.instance_path)
    where = _where(path)
    kind = type(error.kind).__name__.rpartition("_")[2]
    if kind in _OURS:
        return []
    at = _schema_at(schema, list(error.schema_path)[:-1])
    if kind == "Required":
        name = str(error.kind.property)
        return [_missing(_where([*path, name]), as_object(as_object(at).get("properties")).get(name), schema)]
    if kind in ("AdditionalProperties", "UnevaluatedProperties"):
        known = as_object(as_object(at).get("properties"))
        return [_unknown([*path, name], name, known) for name in map(str, error.kind.unexpected[:MAX_PROBLEMS])]
    found = _value_at(value, path)
    if kind == "FalseSchema":
        unknown = [_unknown([*path, name], name, {}) for name in list(as_object(found))[:MAX_PROBLEMS]]
        return unknown or [f"{where}: is not allowed"]
    got = _shown(found)
    if kind in ("Type", "Enum", "Constant"):
        return [f"{where}: expected {type_of(at, schema)}, got {got}"]
    if kind in ("AnyOf", "OneOfNotValid"):
        return [f"{where}: {got} fits none of: {type_of(at, schema)}{_closest(error, schema, value)}"]
    return [f"{where}: {one_line(str(error.message), MAX_MESSAGE)}"]


def _closest(error: Any, schema: object, value: object) -> str:
    """What is missing from the alternative that fits best: the one with the fewest problems deepest in the value."""
    context = [list(branch) for branch in getattr(error.kind, "context", ()) if branch]
    branches = [branch for branch in context if any(len(each.schema_path) for each in branch)]
    if not branches or len(branches) > MAX_NAMES:
        return ""
    best = min(branches, key=lambda branch: (-max(len(each.instance_path) for each in branch), len(branch)))
    kind = type(best[0].kind).__name__.rpartition("_")[2]
    return "" if kind in ("Type", "Enum", "Constant") else f"; {one_line(str(best[0].message), MAX_MESSAGE)}"


def _missing(where: str, schema: object, root: object) -> str:
    description = one_line(str(as_object(schema).get("description") or ""), 120)
    kind = f" ({type_of(schema, root)})" if schema is not None else ""
    return f"{where}: missing{kind}{f': {description}' if description else ''}"


def _unknown(path: list[Any], name: str, known: dict[str, Any]) -> str:
    near = nearest(name, known)
    hint = f"; did you mean {near}?" if near else f"; known are {shortened(', '.join(known), 200)}" if known else ""
    return f"{_where(path)}: unknown{hint}"


def unknown_names(schema: bytes, arguments: bytes) -> list[str]:
    """Names that the schema allows but does not know, each with the nearest that it does: where a call failed
    already, a misspelt name explains what is missing."""
    try:
        properties = as_object(as_object(msgspec.json.decode(schema)).get("properties"))
        names = as_object(msgspec.json.decode(arguments))
    except (msgspec.DecodeError, RecursionError):
        return []
    return [
        _unknown([name], name, properties)
        for name in islice((name for name in names if properties and name not in properties), MAX_PROBLEMS)
    ]


def _schema_at(schema: object, path: list[Any]) -> object:
    """The part of a schema at a path; `$ref` is followed."""
    found = schema
    for key in path:
        if key == "$ref":
            found = _pointed(schema, str(as_object(found).get("$ref", "")))
        elif isinstance(found, list):
            items = cast("list[object]", found)
            found = items[key] if isinstance(key, int) and key < len(items) else None
        else:
            found = as_object(found).get(str(key))
    return found


def _pointed(root: object, reference: str) -> object:
    found = root if reference.startswith("#") else None
    for part in reference.split("/")[1:]:
        found = as_object(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _value_at(value: object, path: list[Any]) -> object:
    for key in path:
        items = as_list(value)
        value = (items[key] if key < len(items) else None) if isinstance(key, int) else as_object(value).get(key)
    return value


def _where(path: list[Any]) -> str:
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return shortened(text, 200) or _ROOT


def _shown(value: object) -> str:
    """A value as the model wrote it, cut to size, with its type where that is the point."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
