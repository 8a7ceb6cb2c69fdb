"""Rules for what is said of parameters, and for what is only said although a schema could hold it."""

import re
from collections.abc import Iterator
from typing import Any, Final

from polyplex.catalog.lint import wording
from polyplex.catalog.lint.facts import Parameter, Server, Tool, choices_of, types_of
from polyplex.catalog.lint.findings import Finding, Paste, in_tool, override
from polyplex.catalog.lint.rules.schemas import found
from polyplex.catalog.lint.words import listed, phrase, split, telling, word_set

NAMED: Final = 5
PLAIN: Final = word_set(
    "query url path file filename name title description text content message limit page offset count language city"
    " country email date time timezone format width height color prompt question keyword keywords search symbol"
    " ticker latitude longitude address username password command code directory folder branch repo owner body"
    " subject recipient tag tags email verbose force recursive timeout headers size sort order year month day"
)
AMBIGUOUS: Final = word_set(
    "id ids data value values input inputs output params parameters options opts config settings args kwargs"
    " payload obj object item items type kind mode info target source key flag flags x y a b n s val arg param thing"
    " extra meta context"
)
_UNITS: Final = re.compile(
    r"(?i)\b(?:ms|millis|milliseconds?|s|secs?|seconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?|bytes?|kb|mb|"
    r"gb|px|pixels?|points?|pt|em|rem|km|kilomet\w*|met(?:er|re)s?|miles?|feet|ft|inch\w*|cm|mm|percent\w*|degrees?|hz|"
    r"khz|bpm|tokens?|characters?|chars?|lines?|rows?|items?|samples?|frames?|usd|eur|words?)\b|%|\bin \w+s\b"
)
_MEASURED: Final = word_set(
    "timeout duration delay interval distance radius weight ttl period age speed altitude wait lifetime"
)
_DATED: Final = re.compile(
    r"(?i)(?:^|[_\s-])(?:date|datetime|timestamp|deadline|birthday|birthdate)s?$|(?:Date|DateTime|Timestamp)$"
)
_SHOWN: Final = re.compile(
    r"(?i)yyyy|mm[-/]dd|iso|rfc|unix|epoch|milliseconds|seconds|\d{4}-\d{1,2}|\d{4}/\d\d|\d{8}|format|e\.g|example|"
    r"natural|today|yesterday|strptime|%Y|ago\b"
)
_QUOTED: Final = r"[`'\"\u201c\u2018]([A-Za-z0-9][\w./+:-]{0,30})[`'\"\u201d\u2019]"
_ASIDE: Final = r"(?:\s*\([^)]{0,60}\))?"
_QUOTED_LIST: Final = re.compile(rf"{_QUOTED}{_ASIDE}(?:\s*(?:,|/|\||\bor\b|\band\b|,\s*or)\s*{_QUOTED}{_ASIDE})+")
_ONE_OF: Final = re.compile(
    r"(?i)(?:one of|must be|either|(?:(?:allowed|valid) )?(?:values?|options?|choices?)(?: are)?)\s*:?\s*"
    r"[(\[]?((?:[A-Za-z0-9_.-]{1,30}(?:\s*[,|/]\s*(?:or\s+|and\s+)?|\s+or\s+)){1,20}[A-Za-z0-9_.-]{1,30})"
)
_PLAIN_WORDS: Final = word_set("a an the and or string null this that it both but not")
_BARS: Final = re.compile(r"[(\[]?(?<![{<.|])\b([A-Za-z0-9_-]{1,30}(?:\s?\|\s?[A-Za-z0-9_-]{1,30})+)\b[)\]]?")
_EXAMPLES: Final = re.compile(
    r"(?i)\b(?:e\.g\.?|for example|such as|example|examples|like|similar to|i\.e\.?|etc|(?:common|typical|usual)\w*|"
    r"contains?)\b"
)
_EXAMPLES_FOLLOW: Final = re.compile(r"(?i)\bexamples?\b[^.\n]{0,30}:")
_OPEN_END: Final = re.compile(
    r"(?i)\s*,?\s*(?:etc|and so on|and more|\.\.\.|or (?:a|an|any|other|another|custom|string|some)\b)"
)
_CLOSED: Final = re.compile(r"(?i)\b(?:one of|values?|options?|choices?|must be|either|allowed|valid|supported)\b")
_DEPENDS: Final = re.compile(
    r"(?i)\b(?:required (?:if|when|for|unless)"
    r"|only (?:used|valid|applies|applicable|relevant|needed) (?:if|when|with|for)"
    r"|must be (?:provided|given|set|used) (?:with|together|if|when)"
    r"|mutually exclusive|cannot be (?:used|combined) with"
    r"|either .{1,40} or .{1,40} (?:must|is required|should be provided)"
    r"|at least one of|exactly one of|ignored (?:if|when|unless))"
)


def undescribed(tool: Tool, server: Server) -> Iterator[Finding]:
    """Parameters of which the schema says nothing but a name, though the name does not say it all."""
    silent = [each for each in tool.outer if not each.description.strip()]
    unclear = [each for each in silent if not _clear(each) and not _told_by(tool, each)]
    if not unclear:
        return
    told = [(each, better) for each in silent if (better := wording.parameter(tool, each, server))]
    paste: list[Paste] = [
        override(tool.server, tool.name, "parameters", each.name, value=better) for each, better in told
    ]
    # What a docstring says of parameters moves to them; else it would be said twice.
    from_text = wording.docstring_of(tool).parameters
    if from_text and all(each.name in from_text for each in unclear) and (lead := " ".join(wording.summary(tool, 6))):
        paste.append(override(tool.server, tool.name, "description", value=lead))
    in_prose = len(from_text) > 0
    required = sum(each.required for each in unclear)
    yield Finding(
        rule="parameter-undescribed",
        severity="note" if in_prose or required == 0 else "warning",
        harm=(10 if in_prose else 28) + min(20, 4 * required + len(unclear)),
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=f"no description for {_some(unclear)}" + (", only in the tool's own text" if in_prose else ""),
        advice="describe each where it is declared: clients and providers show it there",
        paste=tuple(paste),
    )


def _clear(parameter: Parameter) -> bool:
    """Whether a name and its type say it: `query`, `file_path`, `include_hidden: boolean`, an enum."""
    words = split(parameter.name)
    if choices_of(parameter.schema) or types_of(parameter.schema) - {"null"} == {"boolean"}:
        return True
    return bool(words) and (words[-1] in PLAIN or (len(words) > 1 and words[-1] not in AMBIGUOUS))


def _told_by(tool: Tool, parameter: Parameter) -> bool:
    """Whether the tool's own text speaks of it, or the parts that it consists of are described."""
    inner = [each for each in tool.parameters if each.path.startswith(f"{parameter.path}.")]
    if inner and sum(bool(each.description) for each in inner) * 2 >= len(inner):
        return True
    if parameter.name == "source" and any(each.name.startswith(("dest", "target")) for each in tool.outer):
        return True
    words = telling(parameter.name)
    return (
        bool(words) and parameter.name.lower() not in AMBIGUOUS and words <= telling(wording.docstring_of(tool).summary)
    )


def ambiguous(tool: Tool, server: Server) -> Iterator[Finding]:
    """Names such as `id` or `data` with a description that adds nothing."""
    unclear = [
        each
        for each in tool.outer
        if each.name.lower() in AMBIGUOUS
        and each.description
        and not telling(each.description) - telling(each.name)
        and not choices_of(each.schema)
    ]
    if unclear:
        better = [(each, wording.parameter(tool, each, server)) for each in unclear]
        paste = tuple(
            override(tool.server, tool.name, "parameters", each.name, value=text) for each, text in better if text
        )
        yield found(
            tool,
            "parameter-ambiguous",
            "warning",
            38,
            f"{_some(unclear)}: neither name nor description says of what",
            "say whose id, which data, in what form",
            paste,
        )


def enum_in_prose(tool: Tool, server: Server) -> Iterator[Finding]:
    """Values that are listed in words only: a model makes up others, and nothing refuses them."""
    told = wording.docstring_of(tool).parameters
    hits: list[tuple[Parameter, list[str]]] = []
    for each in tool.outer:
        kind = types_of(each.schema) - {"null"}
        if kind != {"string"} or choices_of(each.schema) or "pattern" in each.schema:
            continue
        values = values_in(each.description or told.get(each.name, ""))
        # `Either text or regex, not both` names parameters, and no values.
        if values and not {other.name for other in tool.outer} & set(values):
            hits.append((each, values))
    if not hits:
        return
    first, values = hits[0]
    names = [each.name for each, _ in hits]
    paste: list[Paste] = [in_tool("inputSchema", "properties", each.name, "enum", value=own) for each, own in hits]
    paste += [
        override(tool.server, tool.name, "parameters", each.name, value=f"One of {listed(own, 'or')}.")
        for each, own in hits
        if not each.description
    ]
    yield found(
        tool,
        "enum-in-prose",
        "warning",
        33,
        f"{listed(names)}: the values are told in words only "
        f"({first.name}: {', '.join(values[:NAMED])}{', ...' if len(values) > NAMED else ''})",
        "declare them as enum: providers then let a model choose no other",
        tuple(paste),
    )


def values_in(text: str) -> list[str]:
    """The closed list of values that a text names; empty for examples and open lists."""
    for pattern in (_QUOTED_LIST, _ONE_OF, _BARS):
        match = pattern.search(text)
        if match is None or _only_examples(text, match):
            continue
        if pattern is _QUOTED_LIST:
            values = re.findall(_QUOTED, match[0])
        else:
            values = [each for each in re.split(r"\s*[,|/]\s*(?:or\s+|and\s+)?|\s+or\s+", match[1]) if each]
        values = list(dict.fromkeys(value.strip(".") for value in values))
        words = pattern is not _QUOTED_LIST and _PLAIN_WORDS & {value.lower() for value in values}
        if len(values) > 1 and not words:
            return values
    return []


def _only_examples(text: str, match: re.Match[str]) -> bool:
    """Whether others than the values found are possible as well, or they are flags of which several may be given."""
    before = text[: match.start()]
    if _EXAMPLES.search(before[-40:]) or _EXAMPLES_FOLLOW.search(before) or _OPEN_END.match(text, match.end()):
        return True
    several = not re.search(r"(?i)[,|/]|\bor\b", match[0])
    return several and not _CLOSED.search(before[-60:])


def format_missing(tool: Tool, server: Server) -> Iterator[Finding]:
    """Dates as texts without a form, and quantities without a unit."""
    told = wording.docstring_of(tool).parameters
    dates: list[Parameter] = []
    amounts: list[Parameter] = []
    for each in tool.outer:
        said = f"{each.description} {told.get(each.name, '')}"
        types = types_of(each.schema) - {"null"}
        if types == {"string"} and _DATED.search(each.name) and not _SHOWN.search(said) and not _pinned(each.schema):
            dates.append(each)
        words = split(each.name)
        measured = bool(words) and words[-1] in _MEASURED and types <= {"number", "integer"} and types
        if (
            measured
            and not _UNITS.search(f"{said} {phrase(each.name)}")
            and not words[0].startswith(("page", "max", "min"))
        ):
            amounts.append(each)
    if dates:
        yield found(
            tool,
            "format-missing",
            "warning",
            31,
            f"{_some(dates)}: a date, but in which form?",
            "say the form (format date or date-time, or YYYY-MM-DD in the description)",
            tuple(
                in_tool(
                    "inputSchema",
                    "properties",
                    each.name,
                    "format",
                    value="date-time" if "time" in each.name.lower() else "date",
                )
                for each in dates
            ),
        )
    if amounts:
        yield found(
            tool,
            "unit-missing",
            "note",
            22,
            f"{_some(amounts)}: a quantity, but in which unit?",
            "say the unit in the description, or in the name (timeout_ms)",
        )


def _pinned(schema: dict[str, Any]) -> bool:
    return any(key in schema for key in ("format", "pattern", "enum", "const", "examples"))


def dependent(tool: Tool, server: Server) -> Iterator[Finding]:
    """Parameters that need or exclude each other, as words say and the schema does not."""
    schema = tool.schema
    if any(key in schema for key in ("dependentRequired", "dependentSchemas", "dependencies", "if", "oneOf", "anyOf")):
        return
    hits = [each for each in tool.outer if len(tool.outer) > 1 and _depends(each, tool)]
    if hits:
        quote = _DEPENDS.search(hits[0].description)
        yield found(
            tool,
            "parameters-dependent",
            "note",
            24,
            f"{_some(hits)}: depends on others, told in words only ({quote[0][:60]!r})" if quote else "",
            "models overlook it: offer one tool for each case, or check it and answer with what is missing",
        )


def _depends(parameter: Parameter, tool: Tool) -> bool:
    """Whether its words say that it depends on others; `required for self-hosted servers` speaks of no other."""
    match = _DEPENDS.search(parameter.description)
    if match is None or not match[0].lower().endswith(" for"):
        return match is not None
    follows = split(parameter.description[match.end() : match.end() + 80])
    others = {word for other in tool.outer if other.name != parameter.name for word in split(other.name)}
    values = {str(value).lower() for other in tool.outer for value in choices_of(other.schema)}
    return not (others | values).isdisjoint(follows)


def required_in_prose(tool: Tool, server: Server) -> Iterator[Finding]:
    """`(required)` or `optional` in words against what the schema says."""
    wrong = [
        each
        for each in tool.outer
        if (
            re.search(
                r"(?i)\(required\)|^required\b(?! (?:if|when|for|unless))|\bthis (?:field|parameter) is required\b",
                _first_line(each),
            )
            and not each.required
            and "default" not in each.schema
        )
        or (re.search(r"(?i)^\(?optional\b|\(optional\)", _first_line(each)) and each.required)
    ]
    if wrong:
        names = ", ".join(each.name for each in wrong[:NAMED])
        said = "optional" if wrong[0].required else "required"
        yield found(
            tool,
            "required-in-prose",
            "warning",
            36,
            f"{names}: {said} in words, the opposite in the schema",
            "make both say the same",
            (
                in_tool(
                    "inputSchema",
                    "required",
                    value=[each.name for each in tool.outer if each.required != (each in wrong)],
                ),
            ),
        )


def _first_line(parameter: Parameter) -> str:
    """What is said of a parameter itself: lines below often list the members of an object."""
    return parameter.description.strip().partition("\n")[0]


def _some(parameters: list[Parameter]) -> str:
    names = [each.name for each in parameters]
    return listed(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


ALL = (undescribed, ambiguous, enum_in_prose, format_missing, dependent, required_in_prose)
