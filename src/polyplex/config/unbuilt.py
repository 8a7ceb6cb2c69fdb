"""Keys that are understood but do nothing yet. Whoever builds a feature deletes its lines here.

A key that asks for a protection is an error, since starting without the protection would betray who asked for it;
any other is a warning, and only where the value would change what happens.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from polyplex.config.jsonc import KeyPath
from polyplex.config.source import Source, key_text


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """A key below `polyplex` (`*` is any key), the values that ask for the feature, and whether it protects."""

    path: tuple[str, ...]
    asks: Callable[[Any], bool]
    effect: str = ""
    protection: bool = False


UNBUILT = (
    Unbuilt(("policy",), lambda value: value is not None, protection=True),
    Unbuilt(("auth",), bool, protection=True),
    Unbuilt(("guard", "pins"), lambda value: value != "off", protection=True),
    Unbuilt(("servers", "*", "trust"), lambda value: value != "trusted", "results are not marked as untrusted"),
    Unbuilt(("builtins",), bool, "no built-in server is mounted"),
    Unbuilt(("state",), lambda value: str(value).startswith("redis"), "state is not shared between replicas"),
)


def report(options: object, path: KeyPath, source: Source) -> None:
    """Warn of every key in `options` (already checked by type) that asks for what is not built; refuse protections."""
    for unbuilt in UNBUILT:
        for found, value in _matches(options, unbuilt.path, path):
            if not unbuilt.asks(value):
                continue
            if unbuilt.protection:
                name = key_text(unbuilt.path)
                raise source.error(
                    found, f"{name} is not enforced by this version of polyplex; remove the key to start without it"
                )
            source.warn(found, f"has no effect in this version of polyplex: {unbuilt.effect}")


def _matches(value: object, rest: tuple[str, ...], path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if not rest:
        yield path, value
    elif isinstance(value, dict):
        members = cast(dict[str, object], value)
        for key in members if rest[0] == "*" else [rest[0]]:
            if key in members:
                yield from _matches(members[key], rest[1:], (*path, key))
