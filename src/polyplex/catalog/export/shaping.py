"""Fit nodes to a dialect: an object at the root, legal property names, unions and tuples as the provider reads them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polyplex.catalog.export.dialects import Dialect
from polyplex.catalog.export.merging import both, either, either_object, spread, worth_spreading
from polyplex.catalog.export.naming import property_names, renamer
from polyplex.catalog.export.nodes import NEVER, TYPES, UNSET, BadSchema, Node, bare, of_type, relevant, type_of, under
from polyplex.catalog.export.words import brief

_MAX_ROOT_FORMS = 64
# What may not be there at all has to have some schema where it is referred to.
_IMPOSSIBLE = Node(types=("null",), notes=["nothing can be given here"])


def shape(root: Node, definitions: dict[str, Node], dialect: Dialect) -> tuple[Node, dict[str, Node]]:
    """Root and definitions as the dialect can say them. Raises `BadSchema` where no object is accepted."""
    shaper = _Shaper(dialect, definitions, property_names(root, definitions))
    fitted = shaper.fit(shaper.as_object(root), 0)
    below = {name: shaper.fit(node, 0) for name, node in definitions.items()}
    return fitted, {name: _IMPOSSIBLE if node.impossible else node for name, node in below.items()}


class _Shaper:
    def __init__(self, dialect: Dialect, definitions: dict[str, Node], names: set[str]) -> None:
        self._dialect = dialect
        self._definitions = definitions
        self._renamed: Callable[[str], str] = renamer(dialect.property_name, names)
        # Arguments are mapped back branch by branch; that needs each branch to be whole.
        self._spread = dialect.spread or any(self._renamed(name) != name for name in names)

    def resolve(self, node: Node) -> Node:
        """What a reference stands for; other nodes as they are."""
        while node.ref:
            node = self._definitions[node.ref]
        return node

    def as_object(self, root: Node) -> Node:
        """One object without branches for what the root says: arguments are always an object."""
        forms = self._forms(self.resolve(root), 0)
        if not forms:
            raise BadSchema("the input schema accepts no object, and arguments are always one")
        if len(forms) > _MAX_ROOT_FORMS:
            forms = [both(bare(self.resolve(root)), Node(types=("object",), notes=["there are many forms of it"]))]
        # Where the provider knows closed objects only, what a form does not name cannot be given anyway.
        merged = either_object(forms, closed=self._dialect.typed)
        if merged.enum is not None:
            merged = replace(merged, enum=None, notes=[*merged.notes, f"one of {brief(merged.enum, 300)}"])
        return under(merged, replace(root, notes=[note for note in root.notes if note not in merged.notes]))

    def _forms(self, node: Node, depth: int) -> list[Node]:
        own = both(bare(node), Node(types=("object",)))
        if own.impossible:
            return []
        if not node.branches or depth > 4:
            return [own]
        forms: list[Node] = []
        for branch in node.branches:
            for form in self._forms(self.resolve(branch), depth + 1):
                joined = both(form, replace(own, title="", description="", default=UNSET, examples=[]))
                forms.extend([] if joined.impossible else [joined])
                if len(forms) > _MAX_ROOT_FORMS:
                    return forms
        return forms

    def fit(self, node: Node, depth: int) -> Node:
        """The node and all below it in the dialect's terms; a new one."""
        if node.ref:
            return node
        if depth > self._dialect.depth and (node.types is None or {"object", "array"} & set(node.types)):
            node = Node(types=node.types, description=node.description, notes=[*node.notes, "not described further"])
        node = self._fit_branches(relevant(node), depth)
        node = self._fit_object(node, depth)
        node = self._fit_array(node, depth)
        return self._fit_types(node)

    def _fit_branches(self, node: Node, depth: int) -> Node:
        if not node.branches:
            return node
        own = replace(bare(node), title="", description="", default=UNSET, examples=[], notes=[])
        branches = node.branches
        if self._spread and own != Node():
            if not worth_spreading(node):
                needs = [", ".join(branch.required) or branch.title or "another form" for branch in branches]
                note = "one of these is needed: " + "; ".join(dict.fromkeys(needs))
                return replace(node, branches=[], notes=[*node.notes, note])
            branches = spread(node, self.resolve)
            node = under(Node(), node)
        fitted: list[Node] = []
        for branch in branches:
            made = self.fit(branch, depth)
            only_branches = made.branches and made == Node(branches=made.branches)
            fitted.extend(made.branches if only_branches else [made])
        fitted = [branch for branch in fitted if not branch.impossible]
        if not fitted:
            return NEVER
        if len(fitted) == 1 and own == Node() and not fitted[0].ref:
            return under(fitted[0], node)
        return replace(node, branches=fitted)

    def _fit_object(self, node: Node, depth: int) -> Node:
        if not (node.properties or node.required or node.additional):
            return node
        properties: dict[str, Node] = {}
        names: dict[str, str] = {}
        for name in dict.fromkeys((*node.properties, *node.required)):
            below = node.properties.get(name) or self._unnamed(node)
            made = self._renamed(name)
            properties[made] = self.fit(below, depth + 1)
            if properties[made].impossible:
                del properties[made]
            elif made != name:
                names[made] = name
                properties[made] = replace(properties[made], notes=[*properties[made].notes, f"called {name[:100]!r}"])
        required = [self._renamed(name) for name in node.required]
        additional = None if node.additional is None else self.fit(node.additional, depth + 1)
        return replace(node, properties=properties, required=required, additional=additional, names=names)

    def _unnamed(self, node: Node) -> Node:
        return Node() if node.additional is None or node.additional.impossible else node.additional

    def _fit_array(self, node: Node, depth: int) -> Node:
        if not node.prefix and node.items is None:
            return node
        prefix = [self.fit(below, depth + 1) for below in node.prefix]
        prefix = [Node() if below.impossible else below for below in prefix]
        items = None if node.items is None else self.fit(node.items, depth + 1)
        limits = dict(node.limits)
        if items is not None and items.impossible:
            limits["maxItems"] = min(len(prefix), limits.get("maxItems", len(prefix)))
            items = either(prefix) if prefix and not self._dialect.tuples else None
        elif prefix and not self._dialect.tuples:
            items = either([*prefix, items or Node()])
        notes = list(node.notes)
        if prefix and not self._dialect.tuples:
            notes.append("members by position: " + "; ".join(_sketch(below) for below in prefix[:10]))
            prefix = []
        return replace(node, prefix=prefix, items=items, limits=limits, notes=notes)

    def _fit_types(self, node: Node) -> Node:
        """One type for each schema, and enums of the types that may have one."""
        allowed = self._dialect.enum_types
        if allowed is None or (node.enum is None and node.types is None):
            return node
        kinds = node.types if node.enum is None else _kinds(node.enum)
        words = node
        if node.enum is not None and not set(_kinds(node.enum)) <= allowed:
            words = replace(node, notes=[*node.notes, f"one of {brief(node.enum, 300)}"])
        if len([kind for kind in kinds or () if kind != "null"]) < 2 and words is node:
            return relevant(replace(node, types=kinds))
        split = [of_type(node, kind) for kind in kinds or ()]
        split = [part if part.types[0] in allowed else replace(part, enum=None) for part in split if part.types]
        return under(split[0] if len(split) == 1 else Node(branches=split), words)


def _kinds(values: list[Any]) -> tuple[str, ...]:
    kinds = {type_of(value) for value in values}
    return tuple(name for name in TYPES if name in kinds)


def _sketch(node: Node) -> str:
    kind: Any = "/".join(node.types or ("anything",))
    return f"{kind} ({node.description[:60]})" if node.description else kind
