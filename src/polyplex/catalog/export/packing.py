"""For forms in which each schema has one type and objects name all they hold: what is open travels as JSON text.

The strict mode of OpenAI requires every property besides; what is optional takes null there, which means absent on the
way back.
"""

from dataclasses import replace
from typing import Final

from polyplex.catalog.export.dialects import DIALECTS, Dialect
from polyplex.catalog.export.emitting import emit
from polyplex.catalog.export.nodes import (
    LIMITS_OF,
    NEVER,
    TYPES,
    UNSET,
    Node,
    bare,
    of_type,
    relevant,
    type_of,
    under,
    unique,
)
from polyplex.catalog.export.words import brief

_CONTAINERS: Final = ("object", "array")
_SKETCH: Final = DIALECTS["anthropic", "messages", False]
_TOTALS: Final = ((5_000, "properties"), (1_000, "enum values"), (120_000, "letters in names and enum values"))
_LARGE_ENUM: Final = 250
_LARGE_ENUM_LETTERS: Final = 15_000


def pack(root: Node, definitions: dict[str, Node], dialect: Dialect) -> tuple[Node, dict[str, Node]]:
    """Root and definitions with a type on each node, and closed where the dialect is strict."""
    packer = _Packer(dialect, definitions)
    return packer.pack_object(root, 0), {name: packer.pack(node, 0) for name, node in definitions.items()}


class _Packer:
    def __init__(self, dialect: Dialect, definitions: dict[str, Node]) -> None:
        self._dialect = dialect
        self._definitions = definitions

    def pack(self, node: Node, depth: int) -> Node:
        """The node in terms of the dialect; as JSON text where that has none."""
        if node.ref:
            return node
        if node.branches:
            return self._pack_branches(node, depth)
        types = node.types if node.types is not None else _implied(node)
        if types is None:
            return packed(node)
        if not types:
            return NEVER
        node = relevant(replace(node, types=types))
        if len(types) > 1:
            if self._dialect.strict and not set(_CONTAINERS) & set(types):
                return node
            choice = Node(branches=[of_type(node, kind) for kind in types])
            return self._pack_branches(under(choice, replace(node, enum=None)), depth)
        kind = next(iter(types))
        if kind in _CONTAINERS and depth > self._dialect.depth:
            return packed(node)
        if kind == "object":
            if not _closable(node, self._dialect):
                return packed(node)
            return self.pack_object(node, depth)
        if kind == "array":
            return replace(node, prefix=[], items=self.pack(node.items or Node(), depth + 1))
        return node

    def pack_object(self, node: Node, depth: int) -> Node:
        """An object of which only what it names can be given."""
        properties = {name: self.pack(below, depth + 1) for name, below in node.properties.items()}
        if not self._dialect.strict:
            return replace(node, types=("object",), properties=properties)
        filled = {name for name in node.properties if name not in node.required}
        optional: set[str] = set()
        for name in filled:
            below = node.properties[name]
            if properties[name].packed or not self._takes_null(below):
                optional.add(name)
            properties[name] = self._nullable(properties[name])
        return replace(
            node,
            types=("object",),
            properties=properties,
            required=list(properties),
            additional=NEVER,
            filled=filled,
            optional=optional,
        )

    def _pack_branches(self, node: Node, depth: int) -> Node:
        branches = unique(self.pack(branch, depth) for branch in node.branches)
        texts = [branch for branch in branches if branch.packed]
        if len(branches) == 1 and not branches[0].ref:
            return under(branches[0], node)
        if not texts:
            return replace(node, branches=branches)
        rest = [branch for branch in branches if not branch.packed]
        if any(self._admits(branch, "string") for branch in rest):
            return packed(node)  # text and JSON text could not be told apart
        text = (
            texts[0] if len(texts) == 1 else packed(Node(branches=[b for b in node.branches if self._packs(b, depth)]))
        )
        return replace(node, branches=[text, *rest]) if rest else under(text, node)

    def _packs(self, branch: Node, depth: int) -> bool:
        return self.pack(branch, depth).packed

    def _admits(self, node: Node, kind: str, depth: int = 0) -> bool:
        if node.ref:
            return depth > len(self._definitions) or self._admits(self._definitions[node.ref], kind, depth + 1)
        if node.branches:
            return any(self._admits(branch, kind, depth) for branch in node.branches)
        return node.admits(kind) and (node.enum is None or any(type_of(value) == kind for value in node.enum))

    def _takes_null(self, node: Node) -> bool:
        return self._admits(node, "null")

    def _nullable(self, node: Node) -> Node:
        if self._takes_null(node):
            return node
        if node.ref:
            return Node(branches=[node, Node(types=("null",))])
        if node.branches:
            return replace(node, branches=[*node.branches, Node(types=("null",))])
        if not set(_CONTAINERS) & set(node.types or ()):
            enum = None if node.enum is None else [*node.enum, None]
            return replace(node, types=tuple(dict.fromkeys((*(node.types or ()), "null"))), enum=enum)
        inner = replace(node, title="", description="", default=UNSET, examples=[], notes=[])
        return under(Node(branches=[inner, Node(types=("null",))]), node)


def packed(node: Node) -> Node:
    """A string that holds the JSON text of a value of the node."""
    shape = emit(replace(bare(node), description="", notes=[], title="") if not node.branches else node, _SKETCH)
    note = "give it as JSON text" + (f" of this schema: {brief(shape, 300)}" if shape else "")
    return under(Node(types=("string",), packed=True), replace(node, notes=[note, *node.notes]))


def _implied(node: Node) -> tuple[str, ...] | None:
    if node.enum is not None:
        kinds = {type_of(value) for value in node.enum}
        return tuple(name for name in TYPES if name in kinds)
    if node.properties or node.required or node.additional is not None:
        return ("object",)
    if node.items is not None or node.prefix:
        return ("array",)
    for kind in ("string", "number", "array", "object"):
        if set(LIMITS_OF[kind]) - {"format"} & node.limits.keys():
            return (kind,)
    return ("string",) if "format" in node.limits else None


def _closable(node: Node, dialect: Dialect) -> bool:
    """False where something may be given that has no name, and that is more than a habit of the author."""
    if node.additional is None:
        return bool(node.properties)
    if node.additional.impossible:
        return dialect.strict or bool(node.properties)
    return bool(node.properties) and node.additional.plain


def too_open(root: Node) -> bool:
    """True where arguments may have names of which the schema says nothing, or no more than what they hold."""
    if root.additional is None:
        return not root.properties
    return not root.additional.impossible and not root.additional.plain


def too_large(root: Node, definitions: dict[str, Node]) -> str:
    """Which limit of strict mode a tool breaks; empty where it breaks none."""
    properties = values = 0
    letters = sum(map(len, definitions))
    waiting = [root, *definitions.values()]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children())
        properties += len(node.properties)
        values += len(node.enum or ())
        texts = sum(len(value) for value in node.enum or () if isinstance(value, str))
        letters += texts + sum(map(len, node.properties))
        if len(node.enum or ()) > _LARGE_ENUM and texts > _LARGE_ENUM_LETTERS:
            return f"an enum of it has more than {_LARGE_ENUM} values and {_LARGE_ENUM_LETTERS} letters"
    found = (properties, values, letters)
    broken = [
        f"{count} {what}, {limit} are allowed"
        for count, (limit, what) in zip(found, _TOTALS, strict=True)
        if count > limit
    ]
    return "; ".join(broken)
