"""Two schemas as one: `both` where a value has to fit each, `either` where one suffices.

Neither is exact where JSON Schema cannot say it in one schema; what comes out then accepts more, never less.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from polyplex.catalog.export.nodes import NEVER, TYPES, UNSET, Node, bare, same, size, type_of, unique, with_words

_TIGHTER: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "minimum": max, "exclusiveMinimum": max, "minLength": max, "minItems": max, "minProperties": max,
    "maximum": min, "exclusiveMaximum": min, "maxLength": min, "maxItems": min, "maxProperties": min,
}  # fmt: skip
_MAX_PRODUCT: Final = 16
MAX_SIZE: Final = 5000


def both(left: Node, right: Node) -> Node:
    """A node for values that fit both. Neither may be a reference; words are the left's where both have some."""
    if left.impossible or right.impossible:
        return NEVER
    types = _common_types(left.types, right.types)
    enum = _common_enum(left.enum, right.enum)
    if types == () or (enum is not None and not enum):
        return NEVER
    notes: list[str] = []
    merged = Node(
        types=types,
        enum=enum,
        limits=_limits(left.limits, right.limits, notes),
        properties=_properties(left, right),
        required=list(dict.fromkeys(left.required + right.required)),
        additional=_joined(left.additional, right.additional),
        branches=_product(left.branches, right.branches, notes),
    )
    array = left if left.prefix or not right.prefix else right
    other = right if array is left else left
    merged.prefix, merged.items = array.prefix, array.items
    if not array.prefix:
        merged.items = _joined(left.items, right.items)
    elif other.items is not None or other.prefix:
        notes.append("more is asked of the members than is said here")
    merged = with_words(with_words(merged, left), right)
    merged.notes += notes
    return merged


def _joined(left: Node | None, right: Node | None) -> Node | None:
    if left is None or right is None:
        return left or right
    if left.ref or right.ref:
        return left if left.ref == right.ref or not left.ref else right
    return both(left, right)


def _properties(left: Node, right: Node) -> dict[str, Node]:
    merged = dict(left.properties)
    for name, node in right.properties.items():
        mine = merged.get(name)
        merged[name] = node if mine is None else _joined(mine, node) or node
    return merged


def _common_types(left: tuple[str, ...] | None, right: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if left is None or right is None:
        return left if right is None else right
    mine, theirs = _widened(left), _widened(right)
    common = mine & theirs
    if "number" in common:
        common.discard("integer")
    return tuple(name for name in TYPES if name in common)


def _widened(types: tuple[str, ...]) -> set[str]:
    return {*types, "integer"} if "number" in types else set(types)


def _common_enum(left: list[Any] | None, right: list[Any] | None) -> list[Any] | None:
    if left is None or right is None:
        return left if right is None else right
    return [value for value in left if any(same(value, other) for other in right)]


def _limits(left: dict[str, Any], right: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    merged = {**right, **left}
    for name in left.keys() & right.keys():
        if name in _TIGHTER:
            merged[name] = _TIGHTER[name](left[name], right[name])
        elif left[name] != right[name]:
            notes.append(f"{name} also: {right[name]}")
    return merged


def _product(left: list[Node], right: list[Node], notes: list[str]) -> list[Node]:
    if not left or not right:
        return left or right
    if len(left) * len(right) > _MAX_PRODUCT or any(node.ref for node in (*left, *right)):
        notes.append("another choice has to be made as well that is not described here")
        return left
    pairs = [both(mine, theirs) for mine in left for theirs in right]
    return [node for node in pairs if not node.impossible] or [NEVER]


def spread(node: Node, resolve: Callable[[Node], Node]) -> list[Node]:
    """The node's branches, each with what the node itself asks for: together they accept what the node accepts."""
    base = bare(node)
    base = replace(base, title="", description="", default=UNSET, examples=[], notes=[])
    spread_out = [both(with_words(target, branch), base) for branch in node.branches for target in (resolve(branch),)]
    return [branch for branch in spread_out if not branch.impossible]


def worth_spreading(node: Node) -> bool:
    """False where the branches differ in what they require only, or where writing the node out for each is too much."""
    if all(_only_requires(branch) for branch in node.branches):
        return False
    return size(bare(node), MAX_SIZE) * len(node.branches) <= MAX_SIZE


def _only_requires(branch: Node) -> bool:
    alone = Node(types=branch.types, required=branch.required)
    return bool(branch.required) and branch.types in (None, ("object",)) and with_words(alone, branch) == branch


def either(variants: list[Node]) -> Node:
    """A node for values that fit one of the variants; enums of one type become one enum."""
    distinct = unique(variant for variant in variants if not variant.impossible)
    if not distinct:
        return NEVER
    if len(distinct) == 1:
        return distinct[0]
    if all(_only_enum(node) for node in distinct):
        values: list[Any] = []
        for value in (value for node in distinct for value in node.enum or ()):
            if not any(same(value, other) for other in values):
                values.append(value)
        kinds = {type_of(value) for value in values}
        merged = Node(types=tuple(name for name in TYPES if name in kinds), enum=values)
        return with_words(merged, replace(distinct[0], default=UNSET, examples=[]))
    # What accepts everything stands last: it must not hide the shapes that are usual.
    return Node(branches=sorted(distinct, key=lambda node: node.plain))


def _only_enum(node: Node) -> bool:
    return node.enum is not None and not (node.branches or node.properties or node.limits or node.packed)


def either_object(variants: list[Node], *, closed: bool) -> Node:
    """One object for values that fit one of several objects without branches.

    A property that some variants do not name is what they allow others to be, or nothing where all count as `closed`.
    What each asks for becomes a note.
    """
    if len(variants) == 1:
        return variants[0]
    names = list(dict.fromkeys(name for node in variants for name in node.properties))
    merged = Node(types=("object",))
    for name in names:
        seen = [_property(node, name, closed) for node in variants]
        merged.properties[name] = either([node for node in seen if not node.impossible])
    merged.required = [name for name in variants[0].required if all(name in node.required for node in variants)]
    if all(node.additional is not None for node in variants):
        merged.additional = either([node.additional for node in variants if node.additional is not None])
    for name, value in variants[0].limits.items():
        if all(node.limits.get(name, UNSET) == value for node in variants):
            merged.limits[name] = value
    forms = list(dict.fromkeys(_form(node) for node in variants))
    if len(forms) > 1:
        merged.notes.append("give one of these sets: " + "; ".join(forms))
    return merged


def _property(node: Node, name: str, closed: bool) -> Node:
    own = node.properties.get(name)
    if own is not None:
        return own
    return (NEVER if closed else Node()) if node.additional is None else node.additional


def _form(node: Node) -> str:
    fixed = [f"{name} = {sub.enum[0]}" for name, sub in node.properties.items() if sub.enum and len(sub.enum) == 1]
    known = {text.partition(" = ")[0] for text in fixed}
    needed = fixed + [name for name in node.required if name not in known]
    free = [f"{name}?" for name in node.properties if name not in node.required and name not in known]
    title = f"{node.title}: " if node.title else ""
    return title + (", ".join(needed + free) or "nothing")
