"""Turn parsed JSON into the structs of the model: a wrong type is an error with its key, an unknown key a warning.

msgspec would do the conversion alone, but it names neither dictionary keys nor unknown fields.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from polyplex.config.jsonc import KeyPath
from polyplex.config.source import Source, quoted, suggestion
from polyplex.errors import ConfigError

Model = TypeVar("Model", bound=Struct)

TYPE_NAMES: dict[object, str] = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}
LIMITS = (("gt", "greater than"), ("ge", "at least"), ("lt", "less than"), ("le", "at most"))


def bind(
    model: type[Model], value: object, path: KeyPath, source: Source, hint: Callable[[str], str | None] | None = None
) -> Model:
    """Make a `model` of a JSON object. Raises ConfigError for the first wrong type.

    An unknown key is warned of, with what `hint` says of it or the closest key that is known; not where it says None.
    """
    members = as_object(value, path, source)
    kinds = keys_of(model)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(model)}
    for key in members:
        said = None if key in fields else hint(key) if hint else suggestion(key, fields)
        if said is not None:
            source.warn((*path, key), f"unknown key, ignored{said}")
    given = [key for key in members if key in fields]
    bound = {fields[key]: _bind_kind(kinds[key], members[key], (*path, key), source) for key in given}
    return model(**bound)


@cache
def keys_of(model: type[Struct]) -> dict[str, Any]:
    """The annotated type of every key of a model, by its name in the file."""
    hints = get_type_hints(model, include_extras=True)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(model)}


def as_object(value: object, path: KeyPath, source: Source) -> dict[str, object]:
    """The value as a JSON object. Raises ConfigError if it is none, or a key is no string."""
    if not isinstance(value, dict):
        raise _mismatch("an object", value, path, source)
    members = cast(dict[object, object], value)
    if not all(isinstance(key, str) for key in members):
        raise source.error(path, "every key must be a string")
    return cast(dict[str, object], members)


def _bind_kind(kind: Any, value: object, path: KeyPath, source: Source) -> Any:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin = get_origin(bare)
    if isinstance(bare, type) and issubclass(bare, Struct):
        return bind(bare, value, path, source)
    if origin is tuple:
        return _sequence(get_args(bare)[0], value, path, source)
    if origin is dict:
        return _mapping(get_args(bare)[1], value, path, source)
    # `X | None` is one of these or the other, by whether X is annotated.
    if origin in (Union, UnionType) and value is None:
        return None
    if origin in (Union, UnionType):
        return _bind_kind(next(option for option in get_args(bare) if option is not NoneType), value, path, source)
    return value if bare is Any else _leaf(kind, bare, value, path, source)


def _sequence(kind: Any, value: object, path: KeyPath, source: Source) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _mismatch("a list", value, path, source)
    items = cast(list[object], value)
    return tuple(_bind_kind(kind, item, (*path, index), source) for index, item in enumerate(items))


def _mapping(kind: Any, value: object, path: KeyPath, source: Source) -> dict[str, Any]:
    members = as_object(value, path, source)
    return {key: _bind_kind(kind, member, (*path, key), source) for key, member in members.items()}


def _leaf(kind: Any, bare: Any, value: object, path: KeyPath, source: Source) -> Any:
    # A variable can only give a string; where a number or boolean is expected, its text is read as one.
    strict = not (bare in (bool, int, float) and path in source.expanded)
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError:
        if bare is str and isinstance(value, str):  # not shown, since what has to be long is a secret
            raise source.error(path, f"expected at least {_shortest(kind)} characters, found {len(value)}") from None
        raise _mismatch(_expected(kind, bare), value, path, source, options=_options(bare)) from None


def _shortest(kind: Any) -> int:
    return max(note.min_length or 0 for note in get_args(kind)[1:] if isinstance(note, Meta))


def _options(bare: Any) -> tuple[str, ...]:
    return cast(tuple[str, ...], get_args(bare)) if get_origin(bare) is Literal else ()


def _expected(kind: Any, bare: Any) -> str:
    options = _options(bare)
    if options:
        return "one of " + ", ".join(quoted(option) for option in options)
    rules = [note for note in get_args(kind)[1:] if isinstance(note, Meta)]
    limits = [
        f"{words} {limit:.12g}"
        for rule in rules
        for name, words in LIMITS
        if (limit := getattr(rule, name)) is not None
    ]
    return " ".join([TYPE_NAMES[bare], " and ".join(limits)]).strip()


def _mismatch(
    expected: str, value: object, path: KeyPath, source: Source, *, options: tuple[str, ...] = ()
) -> ConfigError:
    """The error about a value; strings are shown only where they stand for one of `options` and came from the file."""
    found = _found(value)
    if isinstance(value, str) and options and path not in source.expanded:
        found = quoted(value) + suggestion(value, options)
    return source.error(path, f"expected {expected}, found {found}")


def _found(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a Python {type(value).__name__}"
