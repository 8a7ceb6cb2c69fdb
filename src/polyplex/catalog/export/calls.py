"""Read the calls that a provider's model made: plain JSON as in the API, or the objects of its SDK."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, cast

from polyplex.errors import ExportError


class ModelCall(NamedTuple):
    """A call as the model made it: the name it was given, its arguments, and the id that the result has to name."""

    name: str
    arguments: dict[str, Any]
    id: str


def read_call(provider: str, call: Any, *, arguments: bool = True) -> ModelCall:
    """The call in a provider's tool-call object; without `arguments`, only which call it is. Raises `ExportError`."""
    fields = as_fields(call)
    inner = fields
    for name in ("function", "functionCall", "function_call"):
        if isinstance(fields.get(name), Mapping) or _is_object(fields.get(name)):
            inner = as_fields(fields[name])
            break
    name = inner.get("name")
    if not isinstance(name, str):
        raise ExportError(f"{_ARTICLE.get(provider, provider)} call needs a name; got the members {_names(fields)}")
    given = next((inner[key] for key in ("arguments", "input", "args") if inner.get(key) is not None), None)
    identifier = fields.get("call_id") or fields.get("id") or inner.get("id") or ""
    read = read_arguments(name, given) if arguments else {}
    return ModelCall(name, read, identifier if isinstance(identifier, str) else "")


_ARTICLE = {"openai": "an OpenAI", "anthropic": "an Anthropic", "gemini": "a Gemini"}


def read_arguments(name: str, given: Any) -> dict[str, Any]:
    """Arguments as a dict, from one or from JSON text; empty text is no arguments. Raises `ExportError`."""
    if isinstance(given, str | bytes):
        try:
            given = json.loads(given or "{}", parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ExportError(f"the arguments of the call of {name[:80]} are no JSON: {error}") from None
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ExportError(f"the arguments of the call of {name[:80]} are {type(given).__name__}, not an object")
    return dict(cast("Mapping[str, Any]", given))


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def as_fields(value: Any) -> dict[str, Any]:
    """The members of a JSON object, or of an SDK's object. Raises `ExportError` for anything else."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        dumped = dump()
        if isinstance(dumped, dict):
            return cast("dict[str, Any]", dumped)
    raise ExportError(f"a tool call is a JSON object or an object of the provider's SDK, not {type(value).__name__}")


def _is_object(value: Any) -> bool:
    return callable(getattr(value, "model_dump", None))


def _names(fields: dict[str, Any]) -> str:
    return ", ".join(sorted(str(name)[:40] for name in fields)[:10]) or "(none)"
