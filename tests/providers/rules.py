"""The published rules of each provider, written from its pages and not from our code.

- OpenAI: https://developers.openai.com/api/docs/guides/function-calling and .../structured-outputs#supported-schemas,
  and the messages of the API: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the
  top level", "array schema missing items", "object schema missing properties", "string too long" (1,024)
- Anthropic: https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools, .../managed-agents (no `$ref`,
  names of properties) and "input_schema does not support oneOf, allOf, or anyOf at the top level"
- Gemini: https://ai.google.dev/api/caching#FunctionDeclaration, #Schema, and the list at `responseJsonSchema`
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator

Check = Callable[[dict[str, Any]], Iterator[str]]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
STRICT_KEYWORDS = {
    "type", "description", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref",
    "$defs", "pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
    "minItems", "maxItems", "title",
}  # fmt: skip
STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
GEMINI_KEYWORDS = {
    "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
    "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
    "propertyOrdering",
}  # fmt: skip
OPENAPI_FIELDS = {
    "type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties",
    "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf",
    "propertyOrdering", "default", "minimum", "maximum",
}  # fmt: skip
OPENAPI_FORMATS = {"STRING": {"date-time", "enum"}, "INTEGER": {"int32", "int64"}, "NUMBER": {"float", "double"}}
CONTAINERS = {"object", "array"}


def schemas(schema: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    """A schema and all below it, with their places."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for keyword in ("properties", "$defs", "patternProperties"):
        for name, below in schema.get(keyword, {}).items():
            yield from schemas(below, f"{path}/{keyword}/{name}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for index, below in enumerate(schema.get(keyword, [])):
            yield from schemas(below, f"{path}/{keyword}/{index}")
    for keyword in ("items", "additionalProperties", "not"):
        if keyword in schema and not isinstance(schema[keyword], bool):
            yield from schemas(schema[keyword], f"{path}/{keyword}")


def object_root(schema: dict[str, Any], forbidden: set[str]) -> Iterator[str]:
    """The root is an object, without unions."""
    if schema.get("type") != "object":
        yield f"the root has type {schema.get('type')!r}"
    for keyword in forbidden & schema.keys():
        yield f"the root has {keyword}"


def valid_schema(schema: dict[str, Any]) -> Iterator[str]:
    """It is JSON Schema of draft 2020-12, and its references lead somewhere."""
    for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema):
        yield f"no JSON Schema: {error.message[:200]}"
    for path, below in schemas(schema):
        if isinstance(below, dict) and "$ref" in below:
            name = below["$ref"].removeprefix("#/$defs/")
            if name not in schema.get("$defs", {}):
                yield f"{path} refers to {below['$ref']}"
            if below.keys() != {"$ref"}:
                yield f"{path} has more beside $ref"


def _named(name: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if not pattern.fullmatch(name):
        yield f"the name {name!r}"


def openai(tool: dict[str, Any]) -> Iterator[str]:
    """Function tools of Chat Completions and of Responses."""
    if tool.get("type") != "function":
        yield "type is not function"
    function = tool.get("function", tool)
    yield from _named(function["name"], NAME)
    if len(function.get("description", "")) > 1024:
        yield "description is too long"
    schema = function["parameters"]
    yield from object_root(schema, {"oneOf", "anyOf", "allOf", "enum", "not", "const"})
    yield from valid_schema(schema)
    if "properties" not in schema:
        yield "object schema missing properties"
    for path, below in schemas(schema):
        types = below.get("type", []) if isinstance(below, dict) else []
        if "array" in ([types] if isinstance(types, str) else types) and "items" not in below:
            yield f"{path}: array schema missing items"
    if function.get("strict"):
        yield from openai_strict(schema)


def openai_strict(schema: dict[str, Any]) -> Iterator[str]:
    """The subset of structured outputs and its limits."""
    properties = values = letters = 0
    for path, below in schemas(schema):
        if not isinstance(below, dict):
            yield f"{path} is {below!r}"
            continue
        for keyword in below.keys() - STRICT_KEYWORDS:
            yield f"{path} has {keyword}"
        if not {"type", "anyOf", "$ref", "enum"} & below.keys():
            yield f"{path} has no type"
        types = below.get("type", [])
        if "object" in ([types] if isinstance(types, str) else types):
            if below.get("additionalProperties") is not False:
                yield f"{path} is open"
            if set(below.get("required", [])) != set(below.get("properties", {})):
                yield f"{path} has properties that are not required"
        if "format" in below and below["format"] not in STRICT_FORMATS:
            yield f"{path} has format {below['format']}"
        properties += len(below.get("properties", {}))
        values += len(below.get("enum", []))
        texts = sum(len(value) for value in below.get("enum", []) if isinstance(value, str))
        letters += texts + sum(map(len, [*below.get("properties", {}), *below.get("$defs", {})]))
        if len(below.get("enum", [])) > 250 and texts > 15_000:
            yield f"{path} has a large enum"
    if properties > 5000 or values > 1000 or letters > 120_000:
        yield f"{properties} properties, {values} values, {letters} letters"
    roots = [schema, *schema.get("$defs", {}).values()]
    if max(map(depth, roots)) > 10:
        yield "more than 10 levels"


def depth(schema: Any) -> int:
    """Levels of nesting, every schema but the branches of unions counted as one."""
    if not isinstance(schema, dict):
        return 0
    deep = [depth(below) - 1 for below in schema.get("anyOf", [])]
    deep += [depth(below) for below in schema.get("properties", {}).values()]
    deep += [depth(schema.get("items"))]
    return 1 + max(deep, default=0)


def anthropic(tool: dict[str, Any]) -> Iterator[str]:
    """Custom tools of the Messages API, and of managed agents."""
    yield from _named(tool["name"], NAME)
    schema = tool["input_schema"]
    yield from object_root(schema, {"oneOf", "anyOf", "allOf"})
    yield from valid_schema(schema)
    for path, below in schemas(schema):
        for keyword in ("$ref", "$defs", "$dynamicRef"):
            if isinstance(below, dict) and keyword in below:
                yield f"{path} has {keyword}"
        for name in below.get("properties", {}) if isinstance(below, dict) else ():
            yield from _named(name, re.compile(r"[a-zA-Z0-9_.-]{1,64}"))


def gemini(declaration: dict[str, Any]) -> Iterator[str]:
    """Function declarations in either form."""
    yield from _named(declaration["name"], re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"))
    if {"parameters", "parametersJsonSchema"} <= declaration.keys():
        yield "both forms of parameters"
    if "parametersJsonSchema" in declaration:
        schema = declaration["parametersJsonSchema"]
        yield from object_root(schema, set())
        yield from valid_schema(schema)
        yield from _gemini_json(schema)
    elif "parameters" in declaration:
        if declaration["parameters"].get("type") != "OBJECT":
            yield "the root is no OBJECT"
        for path, below in schemas(declaration["parameters"]):
            yield from (f"{path} {problem}" for problem in _openapi(below))


def _gemini_json(schema: dict[str, Any]) -> Iterator[str]:
    for path, below in schemas(schema):
        if not isinstance(below, dict):
            yield f"{path} is {below!r}"
            continue
        for keyword in below.keys() - GEMINI_KEYWORDS:
            yield f"{path} has {keyword}"
        for value in below.get("enum", []):
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                yield f"{path} has the enum value {value!r}"
        yield from _gemini_object(path, below)


def _gemini_object(path: str, schema: dict[str, Any]) -> Iterator[str]:
    names = schema.get("properties", {})
    for name in names:
        yield from _named(name, re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"))
    if not set(schema.get("required", [])) <= set(names):
        yield f"{path} requires properties that are not defined"


def _openapi(schema: dict[str, Any]) -> Iterator[str]:
    for keyword in schema.keys() - OPENAPI_FIELDS:
        yield f"has {keyword}"
    if "anyOf" in schema:
        if schema.keys() - {"anyOf", "description", "title", "nullable"}:
            yield "has more beside anyOf"
        return
    kind = schema.get("type")
    if kind not in {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}:
        yield f"has type {kind!r}"
    if kind == "ARRAY" and "items" not in schema:
        yield "items: missing field"
    if kind == "OBJECT" and not schema.get("properties"):
        yield "properties: should be non-empty for OBJECT type"
    if "enum" in schema and (kind != "STRING" or not all(isinstance(value, str) for value in schema["enum"])):
        yield "enum: only allowed for STRING type"
    if "format" in schema and schema["format"] not in OPENAPI_FORMATS.get(str(kind), set()):
        yield f"format: {schema['format']} is not supported for {kind}"
    yield from _gemini_object("object", schema)


CHECKS: dict[str, Check] = {"openai": openai, "anthropic": anthropic, "gemini": gemini}
