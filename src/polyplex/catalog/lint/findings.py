"""Findings: what is wrong, how much it harms, and what to write instead."""

from collections.abc import Iterable
from typing import Any, Final, Literal

from msgspec import Struct

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
Kind = Literal["tool", "resource", "prompt", "server"]


class Paste(Struct, frozen=True):
    """A value to write, and where: keys of the configuration, or of the server's own tool where it cannot help."""

    where: Literal["config", "server"]
    path: tuple[str, ...]
    value: Any


class Finding(Struct, frozen=True, kw_only=True):
    """One thing to mend.

    `harm` orders findings, 0 to 100; `name` is the server's own name of the entry, `key` the public one; `others` are
    public names of the entries that it is about as well.
    """

    rule: str
    severity: Severity
    harm: float
    server: str
    kind: Kind = "tool"
    name: str = ""
    key: str = ""
    message: str
    advice: str
    others: tuple[str, ...] = ()
    paste: tuple[Paste, ...] = ()


def override(server: str, tool: str, *path: str, value: object) -> Paste:
    """An override of a tool in the configuration, such as of its `description`."""
    return Paste("config", ("polyplex", "servers", server, "tools", tool, *path), value)


def in_tool(*path: str, value: object) -> Paste:
    """What the author of a server would write into the definition of the tool."""
    return Paste("server", path, value)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first; equal ones by server and name, so that two runs say the same."""
    order = {severity: index for index, severity in enumerate(SEVERITIES)}
    return sorted(findings, key=lambda each: (order[each.severity], -each.harm, each.server, each.name, each.rule))


def overrides(findings: Iterable[Finding]) -> dict[str, Any]:
    """The proposed words of tools as one fragment of a configuration; of two for one key the worse finding's wins."""
    fragment: dict[str, Any] = {}
    for finding in findings:
        for paste in finding.paste:
            if paste.where == "config" and "tools" in paste.path[3:4]:
                _put(fragment, paste)
    return fragment


def _put(fragment: dict[str, Any], paste: Paste) -> None:
    here = fragment
    for key in paste.path[:-1]:
        here = here.setdefault(key, {})
    here.setdefault(paste.path[-1], paste.value)
