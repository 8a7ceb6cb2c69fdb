"""Rules for what a tool says of itself."""

import re
from collections.abc import Iterator
from typing import Final

from polyplex.catalog.lint import wording
from polyplex.catalog.lint.facts import Server, Tool
from polyplex.catalog.lint.findings import Finding, override
from polyplex.catalog.lint.words import HOLLOW, MARKETING, PREAMBLE, foreign, split, stem, telling, word_set
from polyplex.content.tokens import estimate

LONG_TOKENS: Final = 400
VERY_LONG_TOKENS: Final = 1000
SHORT_WORDS: Final = 3
CLEAR_NAME: Final = 1  # words of a name that says by itself what it does
_ARTICLES: Final = word_set("a an the of for to from in on by with and or this that all")


def missing(tool: Tool, server: Server) -> Iterator[Finding]:
    """No description at all: neither search nor a model knows what the tool is for."""
    if not tool.description.strip():
        yield Finding(
            rule="description-missing",
            severity="error",
            harm=90,
            server=tool.server,
            name=tool.name,
            key=tool.key,
            message="has no description",
            advice="say what it does, on what, and when to use it",
            paste=(override(tool.server, tool.name, "description", value=wording.description(tool)),),
        )


def repeats_name(tool: Tool, server: Server) -> Iterator[Finding]:
    """A description that only says the name again."""
    said = {word for word in split(tool.description) if word not in _ARTICLES}
    if not said or foreign(tool.description):
        return
    own = {stem(word) for word in split(f"{tool.name} {tool.server}")}
    if {stem(word) for word in said if word not in HOLLOW} <= own:
        better = wording.description(tool)
        clear = len(own - {stem(word) for word in split(tool.server)}) > CLEAR_NAME
        yield Finding(
            rule="description-repeats-name",
            severity="note" if clear else "warning",
            harm=24 if clear else 44,
            server=tool.server,
            name=tool.name,
            key=tool.key,
            message=f"its description only repeats its name: {wording.value_of(tool.description.strip())!r}",
            advice="say what the name does not: on what it works, what it takes, what comes back",
            paste=(override(tool.server, tool.name, "description", value=better),)
            if better != tool.description
            else (),
        )


def says_nothing(tool: Tool, server: Server) -> Iterator[Finding]:
    """A description of words that would fit any tool."""
    text = tool.description.strip()
    if not text or foreign(text) or any(repeats_name(tool, server)):
        return
    said = telling(text)
    if len(said) < SHORT_WORDS and len(said - telling(f"{tool.name} {tool.server}")) < SHORT_WORDS - 1:
        yield Finding(
            rule="description-says-nothing",
            severity="warning",
            harm=42,
            server=tool.server,
            name=tool.name,
            key=tool.key,
            message=f"its description says little: {wording.value_of(text)!r}",
            advice="say what it does, on what, and when to use it",
            paste=(override(tool.server, tool.name, "description", value=wording.description(tool)),),
        )


def hollow(tool: Tool, server: Server) -> Iterator[Finding]:
    """`This tool allows you to ...`, and praise: words that cost tokens and tell nothing apart."""
    praise = sorted({word for word in re.findall(r"[a-z-]+", tool.description.lower()) if word in MARKETING})
    preamble = PREAMBLE.match(tool.description)
    if len(praise) < 2 and preamble is None:
        return
    better = wording.without_hollow(tool)
    what = f"praises itself ({', '.join(praise)})" if len(praise) > 1 else "begins with words that say nothing"
    yield Finding(
        rule="description-hollow",
        severity="warning" if len(praise) > 1 else "note",
        harm=30 if len(praise) > 1 else 12,
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=f"its description {what}",
        advice="begin with what it does",
        paste=(override(tool.server, tool.name, "description", value=better),) if telling(better) else (),
    )


def too_long(tool: Tool, server: Server) -> Iterator[Finding]:
    """A description that costs more than most whole tools."""
    cost = estimate(tool.description)
    if cost <= LONG_TOKENS:
        return
    better = wording.short(tool)
    saved = cost - estimate(better)
    yield Finding(
        rule="description-long",
        severity="warning" if cost > VERY_LONG_TOKENS else "note",
        harm=min(60.0, 20 + cost / 40),
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=f"its description takes about {cost} tokens of every list",
        advice=f"keep what decides whether to use it (saves about {saved} tokens); check that no instruction is lost",
        paste=(override(tool.server, tool.name, "description", value=better),) if saved > 0 else (),
    )


def other_script(tool: Tool, server: Server) -> Iterator[Finding]:
    """A description in another script than the names: queries in English do not find it by words."""
    if not foreign(tool.description) or foreign(tool.name):
        return
    better = wording.set_apart(tool, server.instructions)
    yield Finding(
        rule="description-script",
        severity="note",
        harm=28,
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message="its name is English, its description is not: a search in either language finds half of it",
        advice="say it in both, or in the language of your users",
        paste=(override(tool.server, tool.name, "description", value=better),),
    )


ALL = (missing, repeats_name, says_nothing, hollow, too_long, other_script)
