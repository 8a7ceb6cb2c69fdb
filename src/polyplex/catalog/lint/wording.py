"""Better wordings, written from what is there: names, texts, parameters, the server. Nothing is made up."""

import re
from collections.abc import Sequence
from typing import Any, Final

from polyplex.catalog.lint.docstrings import Docstring, read_docstring
from polyplex.catalog.lint.facts import Parameter, Server, Tool, as_object, choices_of
from polyplex.catalog.lint.words import (
    MARKETING,
    PREAMBLE,
    VERBS,
    acting,
    foreign,
    listed,
    name_verb,
    phrase,
    sentences,
    split,
    stem,
    telling,
    verb_of,
    word_set,
)

MAX_SENTENCES: Final = 3
MAX_LENGTH: Final = 600
MAX_NAMED: Final = 6
MAX_CHOICES: Final = 8
LEAST_TELLING: Final = 3
_ENDS: Final = word_set("by with from for in to of on at into as via using")
_RESULTS: Final = word_set("result results content contents data output response value text success")
_EMPTY_SENTENCE: Final = re.compile(
    r"^(?:note|warning|important|prerequisite|example|usage|see|e\.g\.)\b[:!]?", re.IGNORECASE
)
_PRAISE: Final = re.compile(rf"\b(?:{'|'.join(sorted(MARKETING, key=len, reverse=True))})\b", re.IGNORECASE)
_SERVER_PREAMBLE: Final = re.compile(
    r"^(?:(?:this|an?|the|is)\s+)*(?:[\w-]+\s+){0,2}(?:model context protocol|mcp)"
    r"(?:\s*\((?:mcp|model context protocol)\))?(?:\s+model context protocol)?\s+server\b"
    r"(?:\s+(?:that|which|for|to|it|is|based|on))*\s*",
    re.IGNORECASE,
)


def docstring_of(tool: Tool) -> Docstring:
    """The description of a tool taken apart."""
    return read_docstring(tool.description, {parameter.name for parameter in tool.outer})


def from_name(tool: Tool) -> str:
    """A sentence of the words of a tool's name, or of its title where that says more."""
    if tool.title and telling(tool.title) > telling(tool.name):
        return _sentence(tool.title)
    own = set(split(tool.server))
    words = phrase(tool.name).split()
    while (
        len(words) > 1
        and words[0].lower() in own
        and words[0].lower() not in VERBS
        and (_begins(words[1:]) or len(words) > 2)
    ):
        words = words[1:]
    if words:
        words[0] = acting(words[0]) or words[0]
    return _sentence(" ".join(words))


def _begins(words: Sequence[str]) -> bool:
    return bool(words) and bool(acting(words[0]))


def subject_of(tool: Tool) -> str:
    """What a tool is about, from its name: `story` for `getStory`, `paper` for `get_paper_by_id`; "" for nothing."""
    words = phrase(tool.name).lower().split()
    own = set(split(tool.server))
    if len(words) > 1 and words[0] in own and words[0] not in VERBS:
        words = words[1:]
    if words and acting(words[0]):
        words = words[1:]
    for index, word in enumerate(words):
        if word in _ENDS:
            words = words[:index]
            break
    return " ".join(words)


def cleaned(text: str) -> str:
    """A sentence without `This tool allows you to` and without praise."""
    plain = PREAMBLE.sub("", text)
    if plain != text:
        plain = _imperative(plain)
    kept = [word for word in plain.split(" ") if word.strip(".,!").lower() not in MARKETING]
    return " ".join(" ".join(kept).split())


def _imperative(text: str) -> str:
    first, _, rest = text.partition(" ")
    verb = verb_of(first)
    return f"{verb.capitalize()} {rest}" if verb in VERBS and verb != first.lower() else text[:1].upper() + text[1:]


def summary(tool: Tool, limit: int = MAX_SENTENCES) -> list[str]:
    """The first sentences of a description that say something, cleaned; none where all is hollow."""
    own = telling(tool.name)
    found: list[str] = []
    for line in sentences(docstring_of(tool).summary):
        plain = cleaned(line.strip("-*#>! "))
        if (
            not plain
            or plain.endswith((":", "\uff1a"))
            or _EMPTY_SENTENCE.match(plain)
            or (not found and not telling(plain) - own and limit > 1)
        ):
            continue
        if sum(map(len, found)) + len(plain) > (MAX_LENGTH if limit > MAX_SENTENCES else MAX_LENGTH // 2) and found:
            break
        found.append(_sentence(plain))
        if len(found) == limit:
            break
    return found


def takes(tool: Tool) -> str:
    """What a tool takes, in a sentence; "" where it takes nothing."""
    required = [_named(parameter) for parameter in tool.outer if parameter.required]
    optional = [_named(parameter) for parameter in tool.outer if not parameter.required]
    parts: list[str] = []
    if required:
        parts.append(f"Takes {listed(_some(required))}")
    if optional:
        parts.append(f"{'optionally' if required else 'Optionally takes'} {listed(_some(optional))}")
    return f"{', '.join(parts)}." if parts else ""


def _some(names: list[str]) -> list[str]:
    return names if len(names) <= MAX_NAMED else [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1} more"]


def _named(parameter: Parameter) -> str:
    choices = [str(value) for value in choices_of(parameter.schema) if value is not None]
    if choices and len(choices) <= MAX_CHOICES and max(map(len, choices)) <= 20:
        return f"{phrase(parameter.name)} ({listed(choices, 'or')})"
    return phrase(parameter.name)


def returns(tool: Tool) -> str:
    """What a tool returns, from its output schema; "" where it has none that says so."""
    names = [phrase(name) for name in as_object(tool.output.get("properties")) if name.lower() not in _RESULTS]
    return f"Returns {listed(_some(names))}." if names else ""


def of_server(tool: Tool) -> str:
    """The server's name as words."""
    return phrase(re.sub(r"(?i)\bmcp\b|\bserver\b", " ", re.sub(r"[-_]+", " ", tool.server))) or tool.server


def description(tool: Tool) -> str:
    """A description of a tool that had none worth the name."""
    lead = summary(tool) or [from_name(tool)]
    server = of_server(tool)
    if not {stem(word) for word in split(server)} & {stem(word) for word in split(" ".join(lead))}:
        lead[0] = f"{lead[0].removesuffix('.').rstrip()} ({server})."
    return " ".join(filter(None, (*lead, takes(tool), returns(tool))))


def short(tool: Tool) -> str:
    """The description without the sections that belong elsewhere, cut after some sentences."""
    return " ".join(summary(tool, 2 * MAX_SENTENCES)) or description(tool)


def without_hollow(tool: Tool) -> str:
    """The whole description without its preamble and its praise; else as it is, lines included."""
    plain = PREAMBLE.sub("", tool.description)
    if plain != tool.description:
        plain = _imperative(plain)
    return re.sub(r"[^\S\n]{2,}", " ", _PRAISE.sub("", plain)).strip()


def set_apart(tool: Tool, server_text: str = "") -> str:
    """A description that begins with what only this tool has: its own words, its server, what it takes.

    Queries say what a server is for more often than its name: so does this, and more of it where the tool's own text is
    in another script than names are.
    """
    own = summary(tool, 2)
    other = foreign(" ".join(own))
    lead = own or [from_name(tool)]
    if other or telling(from_name(tool)) - telling(" ".join(lead)):
        lead = [from_name(tool), *own]
    where = _where(tool, " ".join(lead), about_server(server_text, 2 if other else 1))
    return " ".join(dict.fromkeys(filter(None, (*lead, where, takes(tool), returns(tool)))))


def _where(tool: Tool, said: str, about: str) -> str:
    """Of which server a tool is, where that is not said yet."""
    name = of_server(tool)
    if about:
        return f"{_capitalised(name)}: {about}"
    return "" if telling(name) <= telling(said) else f"For {name}."


def about_server(server_text: str, limit: int = 1) -> str:
    """What a server says it is for, in some short sentences, without saying that it is a server; "" for nothing."""
    found: list[str] = []
    prose = "\n".join(line for line in server_text.splitlines() if not line.lstrip().startswith(("#", "=", "```")))
    for line in sentences(prose)[:limit]:
        plain = cleaned(_SERVER_PREAMBLE.sub("", line.strip("-*#> ")))
        if sum(map(len, found)) + len(plain) > 150 * (limit + 1) or foreign(plain):
            break
        if len(telling(plain)) >= LEAST_TELLING:
            found.append(_sentence(plain))
    return " ".join(found)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def apart(tool: Tool, sibling: Tool) -> list[str]:
    """The words that only the first of two tools has, most telling first; whole words of name, text, parameters."""
    theirs = _stems(sibling)
    found: dict[str, None] = {}
    sources = (
        tool.name,
        tool.title,
        docstring_of(tool).summary,
        " ".join(each.name for each in tool.outer),
        tool.server,
    )
    for source in sources:
        for word in split(source):
            if telling(word) and stem(word) not in theirs:
                found.setdefault(word)
    return list(found)


def _stems(tool: Tool) -> set[str]:
    texts = (tool.name, tool.title, tool.description, " ".join(each.name for each in tool.outer), tool.server)
    return {stem(word) for text in texts for word in split(text)}


def parameter(tool: Tool, parameter: Parameter, server: Server | None = None) -> str:
    """What is known of a parameter besides its name: from the tool's own text, or from the tools beside it."""
    told = docstring_of(tool).parameters.get(parameter.name, "")
    if told:
        return _sentence(told)
    mention = _mention(tool, parameter)
    if mention:
        return mention
    subject = subject_of_id(tool, parameter)
    if not subject:
        return ""
    source = source_of(subject, tool, server)
    return f"Id of the {subject}{f', see {source}' if source else ''}."


def subject_of_id(tool: Tool, parameter: Parameter) -> str:
    """`paper` for `paper_id`, and for `id` of `get_paper`; "" for what is no id."""
    words = phrase(parameter.name).lower().split()
    if words[-1:] != ["id"]:
        return ""
    return " ".join(words[:-1]) or _singular(subject_of(tool))


def source_of(subject: str, tool: Tool, server: Server | None) -> str:
    """The tool of the same server that lists or finds such things; "" where there is none."""
    if server is None:
        return ""
    wanted = {stem(word) for word in split(subject)}
    for other in server.tools:
        lists = other.name != tool.name and name_verb(other.name, other.server) in ("list", "search", "find")
        if lists and wanted and wanted <= {stem(word) for word in split(subject_of(other))}:
            return other.name
    return ""


def _singular(text: str) -> str:
    return text[:-1] if text.endswith("s") and not text.endswith("ss") else text


def _mention(tool: Tool, parameter: Parameter) -> str:
    """A sentence of the description that speaks of exactly this parameter, by its name in quotes or as code."""
    pattern = re.compile(rf"[`'\"]{re.escape(parameter.name)}[`'\"]")
    others = [each.name for each in tool.outer if each.name != parameter.name]
    for line in sentences(docstring_of(tool).summary):
        if pattern.search(line) and not any(re.search(rf"[`'\"]{re.escape(name)}[`'\"]", line) for name in others):
            return _sentence(line) if len(line) <= 300 else ""
    return ""


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "\u3002", ":")) else f"{text}."


def value_of(fragment: Any) -> str:
    """A short form of a value for messages."""
    shown = str(fragment)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
