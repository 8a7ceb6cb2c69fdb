"""What each provider takes, from its published pages and the types of its SDK.

- OpenAI, function calling and structured outputs: https://developers.openai.com/api/docs/guides/function-calling and
  https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
- Anthropic, tools of the Messages API: https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools;
  managed agents refuse `$ref`, so none is written.
- Gemini, `FunctionDeclaration` and `Schema`: https://ai.google.dev/api/caching#FunctionDeclaration; the subset of JSON
  Schema is the one published for `responseJsonSchema`.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from polyplex.catalog.export.nodes import LIMITS_OF

_ALL_LIMITS: Final = frozenset(name for names in LIMITS_OF.values() for name in names)
_LONG: Final = 32_768


@dataclass(frozen=True, slots=True)
class Dialect:
    """The rules of one form of one provider. `formats` None means all of them.

    `spread` asks for `anyOf` without other assertions beside it, `typed` for a type on each schema, `strict` for closed
    objects whose properties are all required, `enum_types` for one type each besides null, and names those that may
    have an enum; `depth` counts levels below the root.
    """

    provider: str
    form: str
    tool_name: re.Pattern[str]
    max_tools: int
    description: int = _LONG
    property_name: re.Pattern[str] | None = None
    limits: frozenset[str] = _ALL_LIMITS
    formats: frozenset[str] | None = None
    enum_types: frozenset[str] | None = None
    references: bool = False
    tuples: bool = True
    spread: bool = False
    typed: bool = False
    strict: bool = False
    additional: bool = True
    annotations: bool = True
    explicit: bool = False
    lookaround: bool = True
    depth: int = 40


_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Vertex AI: a letter or an underscore first. Newer pages allow 128 characters, older ones 64.
_GEMINI_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")

_OPENAI: Final = Dialect(
    provider="openai",
    form="chat",
    tool_name=_NAME,
    max_tools=128,
    description=1024,  # longer ones are refused by some models
    references=True,
    tuples=False,  # an array has to have `items`, and what stands beside `prefixItems` is read differently by draft
    explicit=True,
)
_STRICT: Final = replace(
    _OPENAI,
    limits=frozenset((
        "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems",
        "maxItems",
    )),
    formats=frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")),
    spread=True,
    typed=True,
    strict=True,
    lookaround=False,
    annotations=False,
    # "up to 10 levels of nesting": counted so that every way of counting comes to no more
    depth=8,
)  # fmt: skip
_GEMINI: Final = Dialect(
    provider="gemini",
    form="json_schema",
    tool_name=_GEMINI_NAME,
    max_tools=512,
    property_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
    limits=frozenset(("minItems", "maxItems", "minimum", "maximum", "format")),
    formats=frozenset(("date-time", "date", "time")),
    enum_types=frozenset(("string", "number", "integer")),
    spread=True,
    annotations=False,
    depth=16,
)

DIALECTS: Final[dict[tuple[str, str, bool], Dialect]] = {
    ("openai", "chat", False): _OPENAI,
    ("openai", "chat", True): _STRICT,
    ("openai", "responses", False): replace(_OPENAI, form="responses"),
    ("openai", "responses", True): replace(_STRICT, form="responses"),
    ("anthropic", "messages", False): Dialect(
        provider="anthropic",
        form="messages",
        tool_name=_NAME,
        max_tools=10_000,
        property_name=re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    ),
    ("gemini", "json_schema", False): _GEMINI,
    ("gemini", "openapi", False): replace(
        _GEMINI,
        form="openapi",
        limits=_ALL_LIMITS - {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"},
        formats=frozenset(("date-time", "int32", "int64", "float", "double")),
        enum_types=frozenset(("string",)),
        tuples=False,
        typed=True,
        additional=False,
    ),
}
DEFAULT_FORMS: Final = {"openai": "chat", "anthropic": "messages", "gemini": "json_schema"}


def find_dialect(provider: str, form: str, strict: bool) -> Dialect:
    """The rules for a provider's form, the default one where it is empty. Raises `ValueError`, with what there is."""
    if provider not in DEFAULT_FORMS:
        raise ValueError(f"provider {provider!r} is not known: use {', '.join(map(repr, DEFAULT_FORMS))}")
    dialect = DIALECTS.get((provider, form or DEFAULT_FORMS[provider], strict))
    if dialect is None:
        known = [
            f"form={name!r}" + (", strict=True" if exact else "") for who, name, exact in DIALECTS if who == provider
        ]
        wanted = f"form={form or DEFAULT_FORMS[provider]!r}" + (", strict=True" if strict else "")
        raise ValueError(f"{provider} has no {wanted}: use {' or '.join(known)}")
    return dialect
