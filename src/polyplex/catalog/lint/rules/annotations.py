"""Rules for annotations: hints by which clients decide what to ask the user for."""

import re
from collections.abc import Iterator
from typing import Final

from polyplex.catalog.lint import wording
from polyplex.catalog.lint.facts import Server, Tool
from polyplex.catalog.lint.findings import Finding, Paste, in_tool, override
from polyplex.catalog.lint.words import CHANGING, CREATING, DESTROYING, LOOKING, deed, listed, split, word_set

HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_HARMLESS_OBJECTS: Final = word_set("draft plan preview query report summary chart diff mock simulation")
_APPENDING: Final = word_set("create append send post publish submit order pay buy book invite")
_SAFE_TWICE: Final = re.compile(
    r"(?i)\bensure|already exist|idempotent|if (?:it does|they do) not exist|upsert|overwrit"
)
_WEB: Final = word_set("web internet online url website webpage http www scrape crawl")


def contradicts(tool: Tool, server: Server) -> Iterator[Finding]:
    """A hint that the name denies: a client would not ask before something is changed."""
    hints = tool.annotations
    verb = deed(tool.name, tool.server, tool.description)
    harmless = bool(_HARMLESS_OBJECTS & set(split(tool.name)))
    said = ""
    if hints.get("readOnlyHint") is True and verb in CHANGING and not harmless:
        said, hint, right = "readOnlyHint is true", "readOnlyHint", False
    elif hints.get("readOnlyHint") is not True and hints.get("destructiveHint") is False and verb in DESTROYING:
        said, hint, right = "destructiveHint is false", "destructiveHint", True
    else:
        return
    yield Finding(
        rule="annotation-contradicts",
        severity="error",
        harm=95 if verb in DESTROYING else 85,
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=f"{said}, but its name says that it will {verb}",
        advice="clients may run it without asking: mend the hint, or let the description say it",
        paste=(in_tool("annotations", hint, value=right), _warned(tool, verb)),
    )


def _warned(tool: Tool, verb: str) -> Paste:
    lead = " ".join(wording.summary(tool)) or wording.from_name(tool)
    effect = "Removes what it is given" if verb in DESTROYING else "Changes data"
    return override(tool.server, tool.name, "description", value=f"{lead} {effect}, whatever its annotations say.")


def contradict_each_other(tool: Tool, server: Server) -> Iterator[Finding]:
    """Hints that cannot both be meant."""
    hints = tool.annotations
    wrong = [(name, kind) for name in HINTS if (kind := type(hints.get(name)).__name__) not in ("bool", "NoneType")]
    if wrong:
        yield _minor(tool, "annotation-type", f"{wrong[0][0]} is no boolean", "make it true or false", (), 45)
    if hints.get("readOnlyHint") is True and hints.get("destructiveHint") is True:
        yield _minor(
            tool,
            "annotation-pair",
            "readOnlyHint and destructiveHint are both true",
            "remove one of them",
            (in_tool("annotations", "destructiveHint", value=False),),
            50,
        )


def unlikely(tool: Tool, server: Server) -> Iterator[Finding]:
    """Hints that the name makes unlikely."""
    hints = tool.annotations
    verb = deed(tool.name, tool.server, tool.description)
    if hints.get("readOnlyHint") is False and verb in LOOKING - {"count", "check"}:
        yield _minor(
            tool,
            "annotation-unlikely",
            f"readOnlyHint is false, but its name says that it will only {verb}",
            "clients ask for each call: make it true where nothing is changed",
            (in_tool("annotations", "readOnlyHint", value=True),),
            18,
        )
    if (
        hints.get("idempotentHint") is True
        and hints.get("readOnlyHint") is not True
        and verb in _APPENDING
        and not _SAFE_TWICE.search(tool.description)
    ):
        yield _minor(
            tool,
            "annotation-unlikely",
            f"idempotentHint is true, but to {verb} twice is rarely the same as once",
            "a client may repeat the call after a time-out: make it false where a second call adds something",
            (in_tool("annotations", "idempotentHint", value=False),),
            40,
        )
    if hints.get("openWorldHint") is False and _WEB & set(split(tool.name)):
        yield _minor(
            tool,
            "annotation-unlikely",
            "openWorldHint is false, but its name speaks of the web",
            "what it returns may come from anybody: make it true",
            (in_tool("annotations", "openWorldHint", value=True),),
            35,
        )


def _minor(tool: Tool, rule: str, message: str, advice: str, paste: tuple[Paste, ...], harm: float) -> Finding:
    return Finding(
        rule=rule,
        severity="warning" if harm >= 30 else "note",
        harm=harm,
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=message,
        advice=advice,
        paste=paste,
    )


def missing(server: Server) -> Iterator[Finding]:
    """Tools without hints count as destructive and open: clients ask for all of them, or for none."""
    without = [tool for tool in server.tools if not any(name in tool.annotations for name in HINTS)]
    if not without:
        return
    changing = [tool.name for tool in without if deed(tool.name, tool.server, tool.description) in CHANGING]
    looking = [tool.name for tool in without if deed(tool.name, tool.server, tool.description) in LOOKING - CREATING]
    parts = [
        f"{listed(names[:4])}{' ...' if len(names) > 4 else ''} {what}"
        for names, what in ((looking, "only look"), (changing, "change something"))
        if names
    ]
    what = f": {'; '.join(parts)}, by their names" if parts else ""
    paste = [in_tool(name, "annotations", "readOnlyHint", value=True) for name in looking[:4]]
    yield Finding(
        rule="annotations-missing",
        severity="note",
        harm=15 + min(10.0, len(changing)),
        server=server.name,
        kind="server",
        message=f"{len(without)} of {len(server.tools)} tools have no annotations{what}",
        advice="without them clients treat every tool as one that may destroy something",
        others=tuple(tool.key for tool in without),
        paste=tuple(paste),
    )


ALL = (contradicts, contradict_each_other, unlikely)
