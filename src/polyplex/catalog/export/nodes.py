"""The form that schemas take between a server's JSON Schema and a provider's subset of it.

A `Node` says which values are accepted: its own members and, where there are branches, at least one of them besides.
What could not be kept as a constraint is kept as words in `notes`. The last members tell the way back from the
arguments that a model made to those of the tool.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
UNSET: Final[Any] = object()

# Which keyword says something about which type; a node that loses the type loses them too.
LIMITS_OF: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties"),
    "boolean": (),
    "null": (),
}


class BadSchema(Exception):
    """A schema that no provider can be given; `str()` says where it is wrong and how."""


@dataclass(slots=True)
class Node:
    """One schema. `types` None means any type, () that nothing is accepted; `additional` None that all is open.

    `ref` names a definition and stands alone. `names` maps the names given to the provider to the server's, `filled`
    holds those that are null when absent and `optional` those of them whose null is nothing else; `packed` means that
    the value travels as JSON text.
    """

    types: tuple[str, ...] | None = None
    enum: list[Any] | None = None
    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    properties: "dict[str, Node]" = field(default_factory=dict[str, "Node"])
    required: list[str] = field(default_factory=list[str])
    additional: "Node | None" = None
    items: "Node | None" = None
    prefix: "list[Node]" = field(default_factory=list["Node"])
    branches: "list[Node]" = field(default_factory=list["Node"])
    ref: str = ""
    title: str = ""
    description: str = ""
    default: Any = UNSET
    examples: list[Any] = field(default_factory=list[Any])
    notes: list[str] = field(default_factory=list[str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    filled: set[str] = field(default_factory=set[str])
    optional: set[str] = field(default_factory=set[str])
    packed: bool = False

    @property
    def impossible(self) -> bool:
        """True where no value is accepted."""
        return self.types == ()

    @property
    def plain(self) -> bool:
        """True where nothing but words is said: every value is accepted."""
        return self == Node(
            title=self.title,
            description=self.description,
            default=self.default,
            examples=self.examples,
            notes=self.notes,
        )

    def children(self) -> "list[Node]":
        """The nodes directly below."""
        below = [*self.properties.values(), *self.prefix, *self.branches]
        return below + [node for node in (self.additional, self.items) if node is not None]

    def admits(self, kind: str) -> bool:
        """True where the types of this node itself leave room for values of that type."""
        return self.types is None or kind in self.types or (kind == "integer" and "number" in self.types)


NEVER: Final = Node(types=())
WORDS: Final = ("title", "description", "default", "examples", "notes")


def size(node: Node, limit: int) -> int:
    """How many nodes a tree has; counting stops above the limit."""
    count, waiting = 0, [node]
    while waiting and count <= limit:
        count += 1
        waiting.extend(waiting.pop().children())
    return count


def unique(nodes: Iterable[Node]) -> list[Node]:
    """The nodes without those that are there already; 1 and true are two values, which `==` does not tell apart."""
    return list({repr(node): node for node in nodes}.values())


def bare(node: Node) -> Node:
    """The node without its branches."""
    return replace(node, branches=[])


def with_words(node: Node, words: Node) -> Node:
    """A copy of the node that takes title, description and so on from another where it has none of its own."""
    own = {name: getattr(node, name) for name in WORDS}
    empty: dict[str, Any] = {"title": "", "description": "", "default": UNSET, "examples": []}
    for name, nothing in empty.items():
        if own[name] is nothing or own[name] == nothing:
            own[name] = getattr(words, name)
    own["notes"] = node.notes + [note for note in words.notes if note not in node.notes]
    return replace(node, **own)


def under(node: Node, words: Node) -> Node:
    """A copy of the node in which the words of another, where there are some, stand before its own."""
    said = with_words(words, node)
    return replace(node, **{name: getattr(said, name) for name in WORDS})


_MEMBERS_OF: Final = {"object": ("properties", "required", "additional", "names"), "array": ("items", "prefix")}


def of_type(node: Node, kind: str) -> Node:
    """What a node without branches says of the values of one type, without its words."""
    kept: dict[str, Any] = {name: getattr(node, name) for name in _MEMBERS_OF.get(kind, ())}
    limits = {name: value for name, value in node.limits.items() if name in LIMITS_OF[kind]}
    kinds = ("integer", "number") if kind == "number" else (kind,)
    enum = None if node.enum is None else [value for value in node.enum if type_of(value) in kinds]
    return Node(types=(kind,), limits=limits, enum=enum or None, **kept)


def relevant(node: Node) -> Node:
    """The node without what it says of types that it does not accept."""
    if node.types is None:
        return node
    members: dict[str, Any] = {}
    nothing = Node()
    for kind, names in _MEMBERS_OF.items():
        if kind not in node.types:
            members |= {name: getattr(nothing, name) for name in names if getattr(node, name)}
    wanted = {name for kind in node.types for name in LIMITS_OF[kind]}
    if not members and node.limits.keys() <= wanted:
        return node
    return replace(node, limits={name: value for name, value in node.limits.items() if name in wanted}, **members)


def says_something(node: Node) -> bool:
    """True where a node has words."""
    return bool(node.title or node.description or node.examples or node.notes or node.default is not UNSET)


def same(left: Any, right: Any) -> bool:
    """JSON equality: 1 equals 1.0, true does not equal 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        mine, theirs = cast("list[Any]", left), cast("list[Any]", right)
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(left, dict) and isinstance(right, dict):
        own, other = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return own.keys() == other.keys() and all(same(value, other[key]) for key, value in own.items())
    return left == right


def type_of(value: Any) -> str:
    """The JSON type of a decoded value; a whole number is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"
