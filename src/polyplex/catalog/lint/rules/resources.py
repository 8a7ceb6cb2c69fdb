"""Rules for what is a tool and should be a resource, and the other way round."""

import re
from collections.abc import Iterator
from typing import Final

from polyplex.catalog.lint.facts import Parameter, Resource, Server, Tool
from polyplex.catalog.lint.findings import Finding, in_tool
from polyplex.catalog.lint.wording import subject_of
from polyplex.catalog.lint.words import (
    CHANGING,
    LOOKING,
    NOUNS_TOO,
    deed,
    leading_verb,
    listed,
    name_verb,
    phrase,
    split,
    verb_of,
    word_set,
)

# What differs from call to call is asked for, not attached.
_PASSING: Final = word_set(
    "current now latest random time status next screenshot logs log health trending trend recent today live console"
    " snapshot state search news top best hot rank ranking rankings price upcoming"
)
_SESSION: Final = word_set("roots page browser tab window session open selected selection active")
_SIDE_EFFECT: Final = re.compile(
    r"(?i)\b(?:reading|fetching|accessing|opening|each read|every read|when read)\b[^.]{0,60}\b"
    r"(creates?|sends?|deletes?|removes?|updates?|triggers?|marks?|resets?|starts?|increments?|consumes?)\b"
)
_IDS: Final = word_set("id ids key slug uuid identifier name")
NAMED: Final = 4


def looked_up(server: Server) -> Iterator[Finding]:
    """Look-ups without an argument, or with nothing but an id: what an application could attach by itself."""
    plain = [tool for tool in server.tools if _is_lookup(tool) and not tool.outer]
    by_id = [tool for tool in server.tools if _is_lookup(tool) and len(tool.outer) == 1 and _is_id(tool.outer[0])]
    if not plain and not by_id:
        return
    parts: list[str] = []
    if plain:
        parts.append(f"{_some(plain)} {'takes' if len(plain) == 1 else 'take'} no argument")
    if by_id:
        parts.append(f"{_some(by_id)} {'takes' if len(by_id) == 1 else 'take'} only an id")
    paste = [
        in_tool("resources", value={"uri": f"{_scheme(server)}://{_path(tool)}", "name": tool.name})
        for tool in plain[:NAMED]
    ]
    paste += [
        in_tool(
            "resourceTemplates",
            value={"uriTemplate": f"{_scheme(server)}://{_path(tool)}/{{{tool.outer[0].name}}}", "name": tool.name},
        )
        for tool in by_id[:NAMED]
    ]
    yield Finding(
        rule="tool-as-resource",
        severity="note",
        harm=14 + min(6, len(plain) + len(by_id)),
        server=server.name,
        kind="server",
        message=f"{'; '.join(parts)}: {'a look-up' if len(plain) + len(by_id) == 1 else 'look-ups'} that could be "
        f"{'a resource' if len(plain) + len(by_id) == 1 else 'resources'}",
        advice="a resource takes no tool's place, and an application can attach, cache and subscribe to it; for "
        'clients that know only tools, "asTools": ["resources"] offers all resources as two tools',
        others=tuple(tool.key for tool in (*plain, *by_id)),
        paste=tuple(paste),
    )


def _is_lookup(tool: Tool) -> bool:
    verb = name_verb(tool.name, tool.server)
    words = set(split(tool.name))
    said = leading_verb(tool.description)
    return (
        verb in ("get", "list", "read", "show", "view", "describe", "fetch", "retrieve")
        and not words & (_PASSING | _SESSION)
        and (not said or said in LOOKING)
        and tool.annotations.get("readOnlyHint") is not False
        and bool(subject_of(tool))
    )


def _is_id(parameter: Parameter) -> bool:
    words = split(parameter.name)
    return parameter.required and bool(words) and words[-1] in _IDS


def _scheme(server: Server) -> str:
    return re.sub(r"[^a-z0-9+.-]+", "-", server.name.lower()).strip("-") or "server"


def _path(tool: Tool) -> str:
    """The name without its verb, as a path."""
    words = phrase(tool.name).lower().split()
    own = set(split(tool.server))
    while len(words) > 1 and (words[0] in own or verb_of(words[0]) in LOOKING):
        words = words[1:]
    return "-".join(words)


def changing(resource: Resource, server: Server) -> Iterator[Finding]:
    """A resource whose reading does something: clients read ahead, read again, and ask nobody."""
    verb = deed(resource.name, resource.server, resource.description)
    told = leading_verb(resource.description)
    effect = _SIDE_EFFECT.search(resource.description)
    doing = ""
    if effect is not None:
        doing = f"its description says that reading {effect[1].lower()} something"
    elif verb in CHANGING - NOUNS_TOO:
        doing = f"its name says that it will {verb}"
    elif told in CHANGING - NOUNS_TOO:
        doing = f"its description says that it will {told}"
    if doing:
        yield Finding(
            rule="resource-changes",
            severity="error",
            harm=78,
            server=resource.server,
            kind="resource",
            name=resource.uri,
            key=resource.key,
            message=f"reading it changes something: {doing}",
            advice="make it a tool: clients read resources ahead and again, and ask nobody",
            paste=(
                in_tool(
                    "tools",
                    value={
                        "name": "_".join(split(resource.name)),
                        "description": resource.description,
                        "annotations": {"readOnlyHint": False},
                    },
                ),
            ),
        )


def undescribed(server: Server) -> Iterator[Finding]:
    """Resources and prompts of which nothing but a name is known."""
    resources = [each for each in server.resources if not each.description.strip()]
    prompts = [each for each in server.prompts if not each.description.strip()]
    silent = [each.name or each.key for each in (*resources, *prompts)]
    if silent and len(silent) * 2 > len(server.resources) + len(server.prompts):
        nouns = listed([noun for noun, found in (("resources", resources), ("prompts", prompts)) if found])
        yield Finding(
            rule="entry-undescribed",
            severity="note",
            harm=11,
            server=server.name,
            kind="server",
            message=f"{len(silent)} {nouns} have no description ({', '.join(silent[:NAMED])})",
            advice="a sentence each: search and people choose by it",
            others=tuple(each.key for each in (*resources, *prompts)),
        )


def _some(tools: list[Tool]) -> str:
    names = [tool.name for tool in tools]
    return listed(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
