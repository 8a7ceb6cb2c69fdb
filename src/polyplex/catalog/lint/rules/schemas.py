"""Rules for input schemas as such: whether they hold, and whether models and providers can follow them."""

from collections.abc import Iterator
from typing import Any, Final

from polyplex.catalog.lint.facts import Json, Server, Tool, as_list, as_object, pointed, types_of
from polyplex.catalog.lint.findings import Finding, Paste, Severity, in_tool
from polyplex.catalog.lint.words import listed

MANY: Final = 15
MANY_REQUIRED: Final = 8
DEEP: Final = 4
MAX_NODES: Final = 20_000
NAMED: Final = 5


def invalid(tool: Tool, server: Server) -> Iterator[Finding]:
    """A schema that is none: providers refuse the request, and with it all other tools."""
    reason = schema_error(tool.schema)
    if reason:
        yield found(
            tool,
            "schema-invalid",
            "error",
            92,
            f"its input schema is not valid: {reason}",
            "mend it; until then providers may refuse every request that carries the tool",
        )


def schema_error(schema: Json) -> str:
    """Why a schema is not one of JSON Schema, "" where it is."""
    import jsonschema_rs  # it takes a while to load, and only this rule needs it

    plain = {key: value for key, value in schema.items() if key != "$schema"}
    try:
        jsonschema_rs.meta.validate(plain)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(map(str, error.instance_path))
        return f"{place or 'at the root'}: {error.message[:120]}"
    except (ValueError, RecursionError) as error:
        return str(error)[:120]
    return ""


def broken_reference(tool: Tool, server: Server) -> Iterator[Finding]:
    """`$ref` to what is not there, or to another document."""
    lost: dict[str, str] = {}
    for node in nodes(tool.schema):
        reference = node.get("$ref")
        if isinstance(reference, str) and pointed(reference, tool.schema) is None:
            lost[reference] = "is not in the schema" if reference.startswith("#") else "is another document"
    if lost:
        first, why = next(iter(lost.items()))
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        yield found(
            tool,
            "schema-reference",
            "error",
            80,
            f"$ref {first[:80]!r} {why}{more}",
            "put the definition under $defs: a model sees only this schema",
        )


def required_unknown(tool: Tool, server: Server) -> Iterator[Finding]:
    """Required parameters that no property describes."""
    names = {parameter.name for parameter in tool.outer}
    if any(key in tool.schema for key in ("allOf", "anyOf", "oneOf", "patternProperties", "$ref")):
        return
    unknown = [each for each in as_list(tool.schema.get("required")) if isinstance(each, str) and each not in names]
    if unknown:
        yield found(
            tool,
            "required-unknown",
            "error",
            75,
            f"requires {listed(unknown[:NAMED])}, which no property describes",
            "describe it under properties, or require it no longer",
            (in_tool("inputSchema", "properties", unknown[0], value={"type": "string", "description": "..."}),),
        )


def root_union(tool: Tool, server: Server) -> Iterator[Finding]:
    """`anyOf`, `oneOf` or `allOf` at the root: several providers refuse them there."""
    keys = [key for key in ("anyOf", "oneOf", "allOf") if as_list(tool.schema.get(key))]
    if keys:
        yield found(
            tool,
            "schema-root-union",
            "warning",
            50,
            f"{listed(keys)} at the root of its input schema",
            "OpenAI and Anthropic refuse this in tools: list all parameters as properties and say in their "
            "descriptions which go together, or offer one tool for each alternative",
        )


def untyped(tool: Tool, server: Server) -> Iterator[Finding]:
    """Parameters that take anything, as far as their schema says."""
    names = [each.path for each in tool.parameters if _says_no_type(each.schema)]
    if names:
        share = sum(name in {each.path for each in tool.outer if each.required} for name in names)
        yield found(
            tool,
            "parameter-untyped",
            "warning",
            45 + min(15, 5 * share),
            f"no type for {_some(names)}",
            "give each a type: models guess otherwise, and often send a text",
        )


def _says_no_type(schema: Json) -> bool:
    telling = ("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "properties", "items", "format", "pattern")
    return not any(key in schema for key in telling)


def loose(tool: Tool, server: Server) -> Iterator[Finding]:
    """Objects without properties and lists without items: a model has to make their shape up."""
    names = [each.path for each in tool.parameters if _has_no_shape(each.schema) and not _has_example(each.description)]
    if names:
        yield found(
            tool,
            "parameter-shapeless",
            "warning",
            40,
            f"{_some(names)} may hold anything",
            "describe the members (properties, items), or show an example in the description",
        )


def _has_no_shape(schema: Json) -> bool:
    types = types_of(schema)
    if types - {"null"} == {"object"}:
        open_to = schema.get("additionalProperties")
        shaped = any(key in schema for key in ("properties", "patternProperties", "anyOf", "oneOf", "allOf", "$ref"))
        return not shaped and not (isinstance(open_to, dict) and open_to)
    if types - {"null"} == {"array"}:
        items = schema.get("items", schema.get("prefixItems"))
        return not items and not any(key in schema for key in ("anyOf", "oneOf", "allOf"))
    return False


def _has_example(text: str) -> bool:
    return any(mark in text for mark in ("{", "[", "e.g", "example", "such as", "key-value", "key/value"))


def deep(tool: Tool, server: Server) -> Iterator[Finding]:
    """Objects in objects in objects: models lose count of the braces."""
    depth = max((each.depth for each in tool.parameters), default=0)
    if depth >= DEEP:
        path = next(each.path for each in tool.parameters if each.depth == depth)
        yield found(
            tool,
            "schema-deep",
            "warning",
            25 + 3 * min(depth, 10),
            f"parameters are nested {depth} levels deep ({path})",
            "flatten it: models get outer parameters right far more often",
        )


def many(tool: Tool, server: Server) -> Iterator[Finding]:
    """More parameters than a model keeps in mind."""
    outer = tool.outer
    required = sum(each.required for each in outer)
    if len(outer) > MANY or required > MANY_REQUIRED:
        what = f"{len(outer)} parameters" if len(outer) > MANY else f"{required} required parameters"
        yield found(
            tool,
            "parameters-many",
            "warning",
            min(60, 20 + len(outer)),
            f"takes {what}",
            "split it by purpose, or give defaults for what is seldom changed",
        )


def twins(tool: Tool, server: Server) -> Iterator[Finding]:
    """Names that differ in nothing but case or separators."""
    seen: dict[str, str] = {}
    for each in tool.outer:
        plain = each.name.replace("_", "").replace("-", "").lower()
        if plain in seen and seen[plain] != each.name:
            yield found(
                tool,
                "parameter-twins",
                "warning",
                55,
                f"{seen[plain]} and {each.name} differ in case or separators only",
                "rename one, or keep one: models take either",
            )
            return
        seen[plain] = each.name


def open_ended(tool: Tool, server: Server) -> Iterator[Finding]:
    """Parameters beyond the listed ones are invited explicitly."""
    extra = tool.schema.get("additionalProperties")
    if tool.outer and (extra is True or extra == {}):
        yield found(
            tool,
            "parameters-open",
            "note",
            10,
            "additionalProperties is true: parameters that a model makes up are accepted",
            "make it false, so that a misspelt parameter is an error that the model can mend",
            (in_tool("inputSchema", "additionalProperties", value=False),),
        )


def wrong_default(tool: Tool, server: Server) -> Iterator[Finding]:
    """A default that the parameter itself would refuse."""
    for each in tool.outer:
        default, types = each.schema.get("default"), types_of(each.schema)
        choices = as_list(each.schema.get("enum"))
        if default is None or each.schema.get("nullable") is True:
            continue
        wrong_type = types and not types & _types(default) and not any(k in each.schema for k in ("$ref", "allOf"))
        if wrong_type or (choices and default not in choices and types != {"array"}):
            what = (
                f"one of {listed([repr(choice) for choice in choices[:NAMED]], 'or')}"
                if choices
                else listed(sorted(types), "or")
            )
            yield found(
                tool,
                "parameter-default",
                "warning",
                42,
                f"the default of {each.name}, {str(default)[:40]!r}, is not {what}",
                "models copy defaults: give one that is accepted",
            )
            return


def _types(value: object) -> set[str]:
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int | float):
        return {"number", "integer"} if float(value).is_integer() else {"number"}
    if isinstance(value, str):
        return {"string"}
    return {"array"} if isinstance(value, list) else {"object"} if isinstance(value, dict) else {"null"}


def nodes(schema: Json) -> Iterator[Json]:
    """Every object within a schema; bounded."""
    waiting: list[Any] = [schema]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        node: object = waiting.pop()
        waiting += as_list(node)
        known = as_object(node)
        if known:
            yield known
            waiting += [value for key, value in known.items() if key not in ("enum", "const", "default", "examples")]


def found(
    tool: Tool, rule: str, severity: Severity, harm: float, message: str, advice: str, paste: tuple[Paste, ...] = ()
) -> Finding:
    """A finding about a tool."""
    return Finding(
        rule=rule,
        severity=severity,
        harm=harm,
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=message,
        advice=advice,
        paste=paste,
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}" if more else listed(names)


ALL = (
    invalid,
    broken_reference,
    required_unknown,
    root_union,
    untyped,
    loose,
    deep,
    many,
    twins,
    open_ended,
    wrong_default,
)
