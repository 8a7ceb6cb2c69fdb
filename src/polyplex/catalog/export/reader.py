"""Read a tool's JSON Schema, of any draft, into nodes: references followed, `allOf` merged, what cannot be said noted.

What comes out accepts everything that the schema accepts. Recursion either stays a reference to a definition, or is
written out a few levels deep and ends in a node that accepts anything of the right type.
"""

from dataclasses import replace
from typing import Any, Final, cast

from polyplex.catalog.export.keywords import is_pattern, read_enum, read_limits, read_types
from polyplex.catalog.export.merging import both, either
from polyplex.catalog.export.nodes import NEVER, UNSET, BadSchema, Node, says_something, under, with_words
from polyplex.catalog.export.references import Document
from polyplex.catalog.export.words import brief

MAX_DEPTH: Final = 40
_MAX_NODES: Final = 10_000
_MAX_INLINED: Final = 3_000
# How often a definition may contain itself where references cannot be kept, and how large a schema may be for that.
_MAX_UNROLLED: Final = 2
_MAX_UNROLLED_NODES: Final = 500
_MAX_ENUM: Final = 1_000
_TOO_DEEP: Final = "what may stand here is not described further"
_ASSERTING: Final = frozenset((
    "type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "items",
    "prefixItems", "allOf", "anyOf", "oneOf", "not", "if", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames", "contains",
    "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef",
))  # fmt: skip
_NOTED: Final = {
    "not": "must not match", "if": "if it matches", "then": "then", "else": "else", "contains": "has to contain",
    "minContains": "at least this many of them", "maxContains": "at most this many of them",
    "propertyNames": "names of properties", "dependentRequired": "properties that need others",
    "dependentSchemas": "properties that ask for more", "dependencies": "properties that need others",
    "patternProperties": "properties by pattern of their name",
    "unevaluatedProperties": "properties not named here", "unevaluatedItems": "further members",
    "contentMediaType": "media type", "contentEncoding": "encoding",
}  # fmt: skip


def read_schema(schema: Any, *, keep_references: bool, closed: bool = False) -> tuple[Node, dict[str, Node]]:
    """The root and the definitions that its nodes refer to. Raises `BadSchema`.

    Where a provider knows `closed` objects only, those have the properties as well that are named under a condition.
    """
    if not isinstance(schema, dict):
        raise BadSchema("the input schema is not an object")
    reader = _Reader(Document(cast("dict[str, Any]", schema)), keep_references, closed)
    root = reader.read(schema, "", 0, "#")
    return root, reader.finish()


class _Reader:
    def __init__(self, document: Document, keep: bool, closed: bool) -> None:
        self._document = document
        self._keep = keep
        self._closed = closed
        self._read_so_far = 0
        self._open: list[int] = []  # the definitions that are being written out
        self._named: dict[int, tuple[str, Any, str]] = {}
        self._definitions: dict[str, Node] = {}

    def finish(self) -> dict[str, Node]:
        """Read the definitions that were referred to."""
        while len(self._definitions) < len(self._named):
            for name, target, base in list(self._named.values())[len(self._definitions) :]:
                self._definitions[name] = self.read(target, base, 0, f"#/$defs/{name}")
        for name in self._definitions:
            if self._leads_nowhere(name):
                self._definitions[name] = Node(notes=["it refers to nothing but itself"])
        return self._definitions

    def _leads_nowhere(self, name: str) -> bool:
        seen = {name}
        node = self._definitions[name]
        while node.ref and node.ref not in seen:
            seen.add(node.ref)
            node = self._definitions[node.ref]
        return bool(node.ref)

    def read(self, schema: Any, base: str, depth: int, path: str) -> Node:
        """A schema and all below it."""
        self._read_so_far += 1
        if schema is True:
            return Node()
        if schema is False:
            return NEVER
        if not isinstance(schema, dict):
            raise BadSchema(f"{path} is {brief(schema, 40)}, not a schema")
        fields = cast("dict[str, Any]", schema)
        if depth > MAX_DEPTH or self._read_so_far > _MAX_NODES:
            return _end(fields)
        base = self._document.base(fields, base)
        reference = fields.get("$ref")
        if isinstance(reference, str):
            return self._refer(fields, reference, base, depth, path)
        return self._own(fields, base, depth, path)

    def _own(self, fields: dict[str, Any], base: str, depth: int, path: str) -> Node:
        types = read_types(fields, path)
        node = Node(types=types, enum=read_enum(fields, types), limits=read_limits(fields, types))
        _read_words(fields, node)
        self._read_object(fields, node, base, depth, path)
        self._read_array(fields, node, base, depth, path)
        for index, part in enumerate(_list(fields, "allOf", path)):
            node = both(node, self._whole(part, base, depth, f"{path}/allOf/{index}"))
        for keyword in ("anyOf", "oneOf"):
            choices = _list(fields, keyword, path)
            if choices:
                branches = [
                    self.read(part, base, depth + 1, f"{path}/{keyword}/{index}") for index, part in enumerate(choices)
                ]
                if fields.get("nullable") is True:
                    branches.append(Node(types=("null",)))
                node = both(node, _one_of(branches))
        if self._closed and not node.impossible and not (node.additional and node.additional.impossible):
            self._add_conditional(fields, node, base, depth, path)
        if node.enum is not None and len(node.enum) > _MAX_ENUM:
            node.notes.append(f"one of {len(node.enum)} values such as {brief(node.enum[:10], 200)}")
            node.enum = None
        return node

    def _add_conditional(self, fields: dict[str, Any], node: Node, base: str, depth: int, path: str) -> None:
        """Properties that are named for some cases only: what has no name could not be given in any."""
        cases = [(f"{path}/{keyword}", fields[keyword]) for keyword in ("then", "else") if keyword in fields]
        for keyword in ("dependentSchemas", "dependencies"):
            if isinstance(fields.get(keyword), dict):
                cases += [(f"{path}/{keyword}/{name}", part) for name, part in fields[keyword].items()]
        named: dict[str, list[Node]] = {}
        for place, part in cases:
            if isinstance(part, dict):
                for name, below in self._whole(part, base, depth, place).properties.items():
                    named.setdefault(name, []).append(below)
        for name, variants in named.items():
            node.properties.setdefault(name, either(variants))

    def _whole(self, schema: Any, base: str, depth: int, path: str) -> Node:
        """A node without references at its top, such as `both` needs."""
        node = self.read(schema, base, depth + 1, path)
        while node.ref:
            target, target_base = next(
                (place, where) for name, place, where in self._named.values() if name == node.ref
            )
            if id(target) in self._open or self._read_so_far > _MAX_NODES:
                return _end(cast("dict[str, Any]", target) if isinstance(target, dict) else {})
            self._open.append(id(target))
            node = with_words(self.read(target, target_base, depth + 1, path), node)
            self._open.pop()
        return node

    def _refer(self, fields: dict[str, Any], reference: str, base: str, depth: int, path: str) -> Node:
        words = Node()
        _read_words(fields, words)
        found = self._document.find(reference, base, path)
        if found is None:
            target_node = Node(notes=[f"described at {reference[:200]}"])
        else:
            target_node = self._target(*found, depth, path, reference, alone=not says_something(words))
        if says_something(words):
            # A reference stands alone; beside words it becomes the only branch of a node that has them.
            target_node = Node(branches=[target_node]) if target_node.ref else target_node
            target_node = under(target_node, words)
        siblings = _ASSERTING & fields.keys()
        if not siblings or not self._document.siblings_count:
            return target_node
        rest = {key: value for key, value in fields.items() if key in siblings or key in ("then", "else", "nullable")}
        own = self._own(rest, base, depth, path)
        if target_node.ref or any(branch.ref for branch in target_node.branches):
            target_node = under(self._whole({"$ref": reference}, base, depth, path), words)
        return under(both(own, target_node), words)

    def _target(self, target: Any, base: str, depth: int, path: str, reference: str, *, alone: bool) -> Node:
        times = _MAX_UNROLLED if self._read_so_far < _MAX_UNROLLED_NODES else 1
        fields = cast("dict[str, Any]", target) if isinstance(target, dict) else {}
        if self._keep and fields and (alone or id(fields) in self._open):
            return Node(ref=self._name(reference, fields, base))
        if self._open.count(id(fields)) >= times:
            return _end(fields, "again as described above")
        if self._open and self._read_so_far > _MAX_INLINED:
            return _end(fields)
        if len(self._open) > MAX_DEPTH:
            raise BadSchema(f"{path} refers to {reference[:80]}, which leads to itself without end")
        self._open.append(id(cast("Any", target)))
        try:
            return replace(self.read(target, base, depth + 1, path))
        finally:
            self._open.pop()

    def _name(self, reference: str, target: dict[str, Any], base: str) -> str:
        known = self._named.get(id(target))
        if known is not None:
            return known[0]
        last = reference.rpartition("/")[2].lstrip("#")
        legal = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in last)
        stem = legal[:48] or "root"
        taken = {name for name, _, _ in self._named.values()}
        name, count = stem, 2
        while name in taken:
            name, count = f"{stem}_{count}", count + 1
        self._named[id(target)] = (name, target, base)
        return name

    def _read_object(self, fields: dict[str, Any], node: Node, base: str, depth: int, path: str) -> None:
        properties = fields.get("properties")
        if properties is not None:
            if not isinstance(properties, dict):
                raise BadSchema(f"{path}/properties is {brief(properties, 40)}, not an object")
            for name, part in cast("dict[str, Any]", properties).items():
                below = self.read(part, base, depth + 1, f"{path}/properties/{name}")
                if isinstance(part, dict) and cast("dict[str, Any]", part).get("required") is True:
                    below.notes.append("required")
                if not below.impossible:
                    node.properties[name] = below
        required = fields.get("required")
        if isinstance(required, list):
            node.required = list(dict.fromkeys(name for name in cast("list[Any]", required) if isinstance(name, str)))
        rest = fields.get("additionalProperties", True)
        patterns = fields.get("patternProperties")
        if rest is True or not isinstance(rest, dict | bool):
            return
        node.additional = self.read(rest, base, depth + 1, f"{path}/additionalProperties")
        if isinstance(patterns, dict) and patterns:
            allowed = [
                self.read(part, base, depth + 1, f"{path}/patternProperties")
                for part in cast("dict[str, Any]", patterns).values()
            ]
            node.additional = either([*allowed, node.additional])

    def _read_array(self, fields: dict[str, Any], node: Node, base: str, depth: int, path: str) -> None:
        items = fields.get("items")
        prefix = fields.get("prefixItems")
        rest = items
        if isinstance(items, list):
            prefix, rest = cast("list[Any]", items), fields.get("additionalItems")
        if isinstance(prefix, list):
            node.prefix = [
                self.read(part, base, depth + 1, f"{path}/prefixItems/{index}")
                for index, part in enumerate(cast("list[Any]", prefix))
            ]
        if isinstance(rest, dict | bool) and rest is not True:
            node.items = self.read(rest, base, depth + 1, f"{path}/items")


def _read_words(fields: dict[str, Any], node: Node) -> None:
    for name in ("title", "description"):
        if isinstance(fields.get(name), str):
            setattr(node, name, fields[name])
    node.default = fields.get("default", UNSET)
    if isinstance(fields.get("examples"), list):
        node.examples = list(fields["examples"])
    elif "example" in fields:
        node.examples = [fields["example"]]
    for keyword, words in _NOTED.items():
        if keyword in fields:
            node.notes.append(f"{words}: {brief(fields[keyword], 200)}")
    pattern = fields.get("pattern")
    if isinstance(pattern, str) and "pattern" not in node.limits and not is_pattern(pattern):
        node.notes.append(f"pattern: {pattern[:200]}")


def _list(fields: dict[str, Any], keyword: str, path: str) -> list[Any]:
    value = fields.get(keyword)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadSchema(f"{path}/{keyword} is {brief(value, 40)}, not a list")
    return cast("list[Any]", value)


def _one_of(branches: list[Node]) -> Node:
    possible = [branch for branch in branches if not branch.impossible]
    if not possible:
        return NEVER
    return Node(branches=possible) if len(possible) > 1 or possible[0].ref else possible[0]


def _end(fields: dict[str, Any], note: str = _TOO_DEEP) -> Node:
    """Anything of the type that a schema names: where its description ends."""
    try:
        types = read_types(fields, "")
    except BadSchema:
        types = None
    node = Node(types=types, notes=[note])
    if isinstance(fields.get("description"), str):
        node.description = fields["description"]
    return node
