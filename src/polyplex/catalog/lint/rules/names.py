"""Rules for names."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from polyplex.catalog.lint.facts import Server, Tool
from polyplex.catalog.lint.findings import Finding, override
from polyplex.catalog.lint.rules.schemas import found
from polyplex.catalog.lint.words import listed, split
from polyplex.mux.names import LEGAL, SEPARATOR

MAX_NAME: Final = 64
MAX_SERVER: Final = 24
_HASHED: Final = re.compile(r"__[0-9a-f]{8}$")
_STYLES: Final = {
    "snake_case": re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+"),
    "kebab-case": re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+"),
    "camelCase": re.compile(r"[a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"),
    "PascalCase": re.compile(r"(?:[A-Z][a-z0-9]+){2,}"),
}


def illegal(tool: Tool, server: Server) -> Iterator[Finding]:
    """A name that model APIs refuse, or that is too long with its server: polyplex shortens it, with a hash."""
    if hashes_names(tool.server):
        return  # it is the server's name then
    legal = LEGAL.fullmatch(tool.name) is not None
    if legal and not (tool.key != tool.name and _HASHED.search(tool.key) and not _HASHED.search(tool.name)):
        return
    room = max(12, MAX_NAME - len(tool.server) - len(SEPARATOR))
    better = re.sub(r"[^a-zA-Z0-9_-]+", "_", tool.name).strip("_")
    if len(better) > room:
        better = better[:room].rpartition("_")[0].rstrip("_-") or better[:room]
    taken = {other.name for other in server.tools}
    paste = (override(tool.server, tool.name, "name", value=better),) if better and better not in taken else ()
    what = "is not legal for model APIs" if not legal else "is too long with its server's"
    yield found(
        tool,
        "name-illegal",
        "warning",
        44,
        f"its name {what}, so that clients see {tool.key}",
        "give it a shorter name of letters, digits, _ and -",
        paste,
    )


def hashes_names(server: str) -> bool:
    """Whether the name of a server alone makes polyplex shorten the names of all its tools."""
    return not LEGAL.fullmatch(server) or SEPARATOR in server or server.endswith("_")


def server_name(server: Server) -> Iterator[Finding]:
    """A name of a server that no public name can begin with."""
    shortened = [tool for tool in server.tools if tool.key != tool.name]
    if hashes_names(server.name) and shortened:
        better = re.sub(r"_{2,}", "_", re.sub(r"[^a-zA-Z0-9_-]+", "-", server.name)).strip("_-") or "server"
        yield Finding(
            rule="server-name",
            severity="warning",
            harm=43,
            server=server.name,
            kind="server",
            message=f"its name is not legal in names of tools, so that clients see {shortened[0].key}",
            advice=f"name it {better[:MAX_SERVER]} in mcpServers: letters, digits, _ and -, without __",
            others=tuple(tool.key for tool in shortened),
        )


def twins(server: Server) -> Iterator[Finding]:
    """Tools of one server whose names differ in case, separators or a plural only."""
    seen: dict[str, Tool] = {}
    for tool in server.tools:
        plain = "".join(split(tool.name)).removesuffix("s")
        other = seen.setdefault(plain, tool)
        if other is not tool:
            yield Finding(
                rule="name-twins",
                severity="warning",
                harm=52,
                server=tool.server,
                name=tool.name,
                key=tool.key,
                message=f"its name differs from {other.name} in case, separators or a plural only",
                advice="name the difference, or deny one of the two",
                others=(other.key,),
            )


def style(server: Server) -> Iterator[Finding]:
    """Names in several styles: a model that knows some guesses the others wrong."""
    styles = {tool.name: kind for tool in server.tools for kind, form in _STYLES.items() if form.fullmatch(tool.name)}
    counts = Counter(styles.values())
    if len(counts) > 1:
        (main, most), *_ = counts.most_common()
        odd = [name for name, kind in styles.items() if kind != main]
        yield Finding(
            rule="name-style",
            severity="note",
            harm=8,
            server=server.name,
            kind="server",
            message=f"{most} names are in {main}, {listed(odd[:4])}{' ...' if len(odd) > 4 else ''} not",
            advice="keep to one style",
        )


ALL = (illegal,)
