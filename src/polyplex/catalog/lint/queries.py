"""Queries to measure with: made from each tool's own words, and given ones."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from polyplex.catalog.lint.facts import Tool
from polyplex.catalog.lint.wording import about_server, docstring_of, from_name, of_server, subject_of
from polyplex.catalog.lint.words import VERBS, foreign, phrase, sentences, split, telling, verb_of

MAX_GIVEN: Final = 20_000
MAX_WORDS: Final = 10
# What people and models say for the verbs of names.
PARAPHRASES: Final[Mapping[str, str]] = {
    "get": "look up",
    "list": "show all",
    "read": "view",
    "fetch": "retrieve",
    "retrieve": "fetch",
    "show": "display",
    "describe": "explain",
    "search": "find",
    "find": "search for",
    "query": "ask for",
    "create": "make a new",
    "add": "insert",
    "insert": "add",
    "delete": "remove",
    "remove": "delete",
    "update": "change",
    "edit": "modify",
    "modify": "edit",
    "write": "save",
    "set": "change",
    "send": "post",
    "post": "send",
    "move": "rename",
    "rename": "move",
    "copy": "duplicate",
    "generate": "make",
    "make": "create",
    "convert": "turn",
    "analyze": "examine",
    "calculate": "work out",
    "compute": "calculate",
    "compare": "see the differences of",
    "check": "verify",
    "validate": "check",
    "verify": "check",
    "run": "execute",
    "execute": "run",
    "open": "load",
    "save": "store",
    "download": "fetch",
    "upload": "send",
    "extract": "pull out",
    "summarize": "sum up",
    "translate": "turn",
    "merge": "combine",
    "split": "divide",
    "plot": "draw",
    "render": "draw",
    "navigate": "go to",
    "install": "set up",
}


class Query(Struct, frozen=True):
    """A query and the public names of the tools that it means."""

    text: str
    relevant: frozenset[str]


class GivenError(ValueError):
    """A line of a file of queries that cannot be used: `line` from 1 on, and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


class _Line(Struct):
    text: str
    relevant: list[str]


class Made(Struct, frozen=True):
    """A query made from a tool; `own` where it has the tool's own words, and no other verb in their place."""

    text: str
    own: bool


def of_tool(tool: Tool) -> list[Made]:
    """Queries that mean this tool: its name as words and said otherwise, what its text says, what it takes.

    People leave the server out, models often name what it is for: one query has it.
    """
    name = from_name(tool).rstrip(".").lower()
    lead = next(iter(sentences(docstring_of(tool).summary)), "")
    own = telling(tool.name)
    made = {name: True}
    made.setdefault(paraphrased(name), False)
    if lead and not foreign(lead):
        made.setdefault(paraphrased(" ".join(lead.split()[: 2 * MAX_WORDS]).rstrip(".")), False)
        beyond = [word for word in split(lead) if telling(word) and not telling(word) <= own][:MAX_WORDS]
        if len(beyond) > 1:
            made.setdefault(" ".join(beyond), True)
    about = of_server(tool)
    if foreign(lead):  # then English queries find by other words than its own
        about = " ".join(word for word in about_server(tool.document.server_text).split() if telling(word)) or about
    made.setdefault(f"{' '.join(about.split()[:MAX_WORDS])}: {paraphrased(name)}", False)
    subject = subject_of(tool)
    required = [phrase(each.name) for each in tool.outer if each.required][:3]
    if subject and required:
        made.setdefault(f"{subject} by {' and '.join(required)}", True)
    return [Made(text, plain) for text, plain in made.items() if telling(text)]


def paraphrased(text: str) -> str:
    """The text with the verb that it begins with said otherwise; without such a verb as it is."""
    first, _, rest = text.partition(" ")
    verb = verb_of(first.strip(".,").lower())
    other = PARAPHRASES.get(verb) if verb in VERBS or verb in PARAPHRASES else None
    return f"{other} {rest}" if other and rest else text


def read_given(data: bytes, tools: Iterable[Tool]) -> tuple[list[Query], list[str]]:
    """Queries as JSON lines `{"text": ..., "relevant": [...]}`, and the names in them that no tool has.

    Names are public ones, `server/tool`, or a server's own where only one tool has it. Raises `GivenError`.
    """
    names = names_of(tools)
    found: list[Query] = []
    unknown: dict[str, None] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        if len(found) == MAX_GIVEN:
            raise GivenError(number, f"more than {MAX_GIVEN} queries")
        try:
            given = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GivenError(number, f"no query {{text, relevant}}: {error}") from None
        keys = frozenset(names[name] for name in given.relevant if name in names)
        unknown |= {name: None for name in given.relevant if name not in names}
        if keys and given.text.strip():
            found.append(Query(given.text, keys))
    return found, list(unknown)


def names_of(tools: Iterable[Tool]) -> dict[str, str]:
    """Every name that means exactly one tool, and the public name of that tool."""
    found: dict[str, str] = {}
    shared: set[str] = set()
    for tool in tools:
        for name in (
            tool.name,
            f"{tool.server}/{tool.name}",
            f"{tool.server}.{tool.name}",
            f"{tool.server}__{tool.name}",
        ):
            if found.setdefault(name, tool.key) != tool.key:
                shared.add(name)
    for name in shared:
        del found[name]
    return found | {key: key for key in found.values()}
