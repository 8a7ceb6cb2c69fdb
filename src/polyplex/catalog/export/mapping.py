"""Arguments between the form that a provider was given and the server's own."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

from polyplex.catalog.export.nodes import Node, same, type_of

_MAX_DEPTH: Final = 100
_MAX_STEPS: Final = 200_000  # unions in unions can be tried in more ways than there is time for
_NOT_JSON: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Mapping:
    """The nodes of one exported tool, kept for the way back."""

    root: Node
    definitions: dict[str, Node]

    def original(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The server's arguments for those of a model."""
        return _Back(self.definitions).walk(self.root, arguments, 0)

    def exported(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a model would have to give for these arguments of the server's."""
        return _Forth(self.definitions).walk(self.root, arguments, 0)


class _Walk(ABC):
    """One way through a value along the nodes that describe it."""

    def __init__(self, definitions: dict[str, Node]) -> None:
        self._definitions = definitions
        self._steps = 0

    @abstractmethod
    def packed(self, value: Any) -> Any:
        """The other form of a value that travels as JSON text."""

    @abstractmethod
    def members(self, node: Node, value: dict[str, Any], depth: int) -> dict[str, Any]:
        """The other form of an object."""

    @abstractmethod
    def through(self, branch: Node, value: Any, depth: int) -> Any:
        """The other form by one branch; `_NOT_JSON` where the value does not fit it."""

    def walk(self, node: Node, value: Any, depth: int) -> Any:
        """The other form of a value that a node describes."""
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return value
        node = self._resolve(node)
        if node.branches:
            return self._choose(node, value, depth)
        if node.packed:
            return self.packed(value)
        if isinstance(value, dict):
            return self.members(node, cast("dict[str, Any]", value), depth)
        if isinstance(value, list):
            return [self.below(_member(node, at), item, depth) for at, item in enumerate(cast("list[Any]", value))]
        return value

    def below(self, node: Node | None, value: Any, depth: int) -> Any:
        """The other form of a member, which may have no description."""
        return value if node is None else self.walk(node, value, depth + 1)

    def _choose(self, node: Node, value: Any, depth: int) -> Any:
        for branch in node.branches:
            mapped = self.through(branch, value, depth + 1)
            if mapped is not _NOT_JSON:
                return mapped
        kind = type_of(value)
        for branch in map(self._resolve, node.branches):
            if not branch.branches and not branch.packed and branch.admits(kind):
                return self.walk(branch, value, depth + 1)
        return value

    def _resolve(self, node: Node) -> Node:
        while node.ref:
            node = self._definitions[node.ref]
        return node

    def fits(self, node: Node, value: Any, depth: int) -> bool:
        """True where a value has the shape that the provider was given; limits of single values are not looked at."""
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return True
        node = self._resolve(node)
        if node.branches and not any(self.fits(branch, value, depth + 1) for branch in node.branches):
            return False
        if not node.admits(type_of(value)):
            return False
        if node.enum is not None and not any(same(value, allowed) for allowed in node.enum):
            return False
        if node.packed:
            return value is None or unpacked(value) is not _NOT_JSON  # null is what is left out
        if isinstance(value, dict):
            return self._fits_object(node, cast("dict[str, Any]", value), depth)
        if isinstance(value, list):
            pairs = ((_member(node, at), item) for at, item in enumerate(cast("list[Any]", value)))
            return all(below is None or self.fits(below, item, depth + 1) for below, item in pairs)
        return True

    def _fits_object(self, node: Node, value: dict[str, Any], depth: int) -> bool:
        if any(name not in value for name in node.required):
            return False
        pairs = ((node.properties.get(name, node.additional), item) for name, item in value.items())
        return all(below is None or self.fits(below, item, depth + 1) for below, item in pairs)


class _Back(_Walk):
    def packed(self, value: Any) -> Any:
        read = unpacked(value)
        return value if read is _NOT_JSON else read

    def members(self, node: Node, value: dict[str, Any], depth: int) -> dict[str, Any]:
        return {
            node.names.get(name, name): self.below(node.properties.get(name, node.additional), item, depth)
            for name, item in value.items()
            if item is not None or name not in node.optional
        }

    def through(self, branch: Node, value: Any, depth: int) -> Any:
        return self.walk(branch, value, depth) if self.fits(branch, value, depth) else _NOT_JSON


class _Forth(_Walk):
    def packed(self, value: Any) -> Any:
        return json.dumps(value, ensure_ascii=False)

    def members(self, node: Node, value: dict[str, Any], depth: int) -> dict[str, Any]:
        given = {own: name for name, own in node.names.items()}
        out: dict[str, Any] = {}
        for own, item in value.items():
            name = given.get(own, own)
            out[name] = self.below(node.properties.get(name, node.additional), item, depth)
        return out | {name: None for name in node.properties if name in node.filled and name not in out}

    def through(self, branch: Node, value: Any, depth: int) -> Any:
        mapped = self.walk(branch, value, depth)
        return mapped if self.fits(branch, mapped, depth) else _NOT_JSON


def _member(node: Node, index: int) -> Node | None:
    return node.prefix[index] if index < len(node.prefix) else node.items


def unpacked(value: Any) -> Any:
    """The value of a JSON text; a mark of its own where it is none."""
    if not isinstance(value, str):
        return _NOT_JSON
    try:
        return json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def changes(root: Node, definitions: dict[str, Node]) -> bool:
    """True where arguments differ between the two forms."""
    waiting = [root, *definitions.values()]
    while waiting:
        node = waiting.pop()
        if node.names or node.filled or node.packed:
            return True
        waiting.extend(node.children())
    return False
