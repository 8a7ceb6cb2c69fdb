"""Names that a provider takes: its own where it is legal, else a legal one that ends in a hash of it."""

import hashlib
import re
from collections.abc import Callable, Container
from typing import Final

from polyplex.catalog.export.nodes import Node

_LIMIT: Final = 64
_DIGEST: Final = 8


def legal_name(name: str, pattern: re.Pattern[str], taken: Container[str]) -> str:
    """The name itself where it matches, else its legal letters and a hash: stable, and none of `taken`."""
    if pattern.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    stem = re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_")
    stem = stem if re.match(r"[a-zA-Z]", stem) else f"x_{stem}".rstrip("_")
    for length in range(_DIGEST, len(digest) - 10):
        made = f"{stem[: _LIMIT - 1 - length]}_{digest[:length]}"
        if made not in taken:
            return made
    raise AssertionError("a SHA-256 has been met in every length")


def property_names(root: Node, definitions: dict[str, Node]) -> set[str]:
    """All names of properties in a tool's schema."""
    names: set[str] = set()
    waiting = [root, *definitions.values()]
    while waiting:
        node = waiting.pop()
        names.update(node.properties)
        names.update(node.required)
        waiting.extend(node.children())
    return names


def renamer(pattern: re.Pattern[str] | None, names: set[str]) -> Callable[[str], str]:
    """How the properties of one tool are called for the provider: the same name wherever the same one stands."""
    if pattern is None:
        return lambda name: name
    made: dict[str, str] = {}
    taken = {name for name in names if pattern.fullmatch(name)}
    for name in sorted(names - taken):
        made[name] = legal_name(name, pattern, taken)
        taken.add(made[name])
    return lambda name: made.get(name, name)
