"""`polyplex lint`: judges what servers offer, worst first, each finding with a wording to paste."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from polyplex.catalog.lint.confusion import Index
from polyplex.catalog.lint.facts import Server, Tool
from polyplex.catalog.lint.findings import SEVERITIES, Finding, Paste, Severity, overrides
from polyplex.catalog.lint.judge import Measured, judge, measure, reworded
from polyplex.catalog.lint.queries import GivenError, Query, read_given
from polyplex.cli.arguments import Request, UsageError
from polyplex.cli.commands import LINT
from polyplex.cli.configuration import count, load, warn
from polyplex.cli.offers import check_names, offered_by
from polyplex.cli.progress import Outcome
from polyplex.cli.session import decline, run, started
from polyplex.cli.terminal import LABEL_WIDTH, Colour, Terminal, harmless, one_line, stdout_is_terminal, write_result
from polyplex.config import Config, SearchOptions, cache_dir
from polyplex.errors import MissingExtraError

MAX_QUERY_BYTES: Final = 16 * 1024 * 1024
_COLOURS: Final[dict[Severity, Colour]] = {"error": "red", "warning": "yellow", "note": "cyan"}
_INDENT: Final = " " * LABEL_WIDTH


class Judged(msgspec.Struct, frozen=True, rename="camel"):
    """All that is printed with --json."""

    servers: int
    tools: int
    findings: list[Finding]
    measured: Measured
    overrides: dict[str, Any]


def lint(request: Request) -> int:
    """Judge. The exit code is 1 for a finding as bad as --fail-on says, or when no server could be started."""
    import sys

    terminal = Terminal()
    config = load(request.options.get("config"))
    warn(config, terminal)
    check_names(request.arguments, list(config.servers), LINT)
    limit = _limit(request.options.get("k"))
    given = _given(request.options.get("queries"))
    offers, outcomes = run(_offers(config, terminal), terminal, verbose=request.has("verbose"))
    judged = _judged(offers, request.arguments, given, config.options.search, terminal)
    failed = _fails(judged.findings, request.options.get("fail-on", "error"))
    if request.has("overrides"):
        write_result(msgspec.json.format(msgspec.json.encode(judged.overrides), indent=2).decode())  # to be pasted
    elif request.has("json"):
        write_result(_json(judged))
    else:
        page = Terminal(sys.stdout)
        pasted: set[tuple[str, ...]] = set()
        parts = [shown(each, page, pasted) for each in judged.findings[:limit]]
        write_result("\n\n".join([*parts, _summary(judged, limit, page)]))
    down = bool(outcomes) and all(outcome.reason is not None for outcome in outcomes)
    return 1 if failed or down else 0


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise UsageError(f"-k takes a number from 1 on; not {text!r}", LINT)
    return int(text)


def _given(file: str | None) -> bytes:
    """The file of queries, read before any server is started. Raises `OSError` or `UsageError`."""
    if file is None:
        return b""
    path = Path(file).expanduser()
    with path.open("rb") as stream:
        data = stream.read(MAX_QUERY_BYTES + 1)
    if len(data) > MAX_QUERY_BYTES:
        raise UsageError(f"{file} is larger than {MAX_QUERY_BYTES >> 20} MB", LINT)
    _queries(data, ())  # before any server is started for nothing
    return data


def _queries(given: bytes, tools: Sequence[Tool]) -> tuple[list[Query], list[str]]:
    try:
        return read_given(given, tools)
    except GivenError as error:
        raise UsageError(f"--queries: {error}", LINT) from None


async def _offers(config: Config, terminal: Terminal) -> tuple[list[Server], list[Outcome]]:
    async with started(config, terminal, decline) as (multiplexer, outcomes):
        return offered_by(multiplexer.gateway), outcomes


def searched(options: SearchOptions, terminal: Terminal) -> Index:
    """The index that clients' searches use, as it is configured."""
    from polyplex.catalog.search.index import open_index

    try:
        return open_index(options, cache_dir())
    except MissingExtraError as error:
        terminal.tell("warning", f"measured without minilm: {error}", "yellow")
        return open_index(msgspec.structs.replace(options, embedder="static"))


def _judged(
    offers: Sequence[Server], wanted: Sequence[str], given: bytes, search: SearchOptions, terminal: Terminal
) -> Judged:
    """Judge all servers, since tools are confused across them, and keep what is about the wanted ones."""
    tools = [tool for server in offers for tool in server.tools]
    queries, unknown = _queries(given, tools)
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        names = ", ".join(map(one_line, unknown[:3]))
        terminal.tell(
            "warning", f"no tool is named {names}{more}, or more than one is; queries for them count less", "yellow"
        )
    index = searched(search, terminal)
    report = judge(offers, index, queries)
    found = [each for each in report.findings if not wanted or each.server in wanted]
    proposed = overrides(found)
    measured = measure(index, offers, reworded(offers, proposed), queries, report.before)
    return Judged(len(offers), len(tools), found, measured, proposed)


def _fails(found: Sequence[Finding], level: str) -> bool:
    bad = SEVERITIES[: SEVERITIES.index(level) + 1] if level in SEVERITIES else ()
    return any(each.severity in bad for each in found)


def _json(value: object) -> str:
    raw = msgspec.json.encode(value)
    return (msgspec.json.format(raw, indent=2) if stdout_is_terminal() else raw).decode()


def shown(finding: Finding, page: Terminal, pasted: set[tuple[str, ...]] | None = None) -> str:
    """A finding as lines: what, of whom, what to do, and what to paste.

    `pasted` has the keys of the configuration that a worse finding gave words for: these hold, as in `overrides`.
    """
    head = page.paint(finding.severity, _COLOURS[finding.severity]) + " " * (LABEL_WIDTH - len(finding.severity))
    name = one_line(finding.key or (f"{finding.server}: {finding.name}" if finding.name else finding.server))
    lines = [f"{head}{page.paint(name, 'bold')}  {page.paint(finding.rule, 'dim')}"]
    lines.append(_INDENT + page.wrapped(one_line(finding.message), LABEL_WIDTH))
    lines += _field("do", one_line(finding.advice), page, "cyan")
    for paste in finding.paste:
        if paste.where == "config" and pasted is not None:
            if paste.path in pasted:
                lines += _field("paste", "see the words that are proposed for it above", page, "green")
                continue
            pasted.add(paste.path)
        lines += _paste(paste, page)
    return "\n".join(lines)


def _field(label: str, text: str, page: Terminal, colour: Colour) -> list[str]:
    head = f"{_INDENT}{page.paint(label, colour)}{' ' * (LABEL_WIDTH - len(label))}"
    return [head + page.wrapped(text, 2 * LABEL_WIDTH)]


def _paste(paste: Paste, page: Terminal) -> list[str]:
    """The key and its value on lines of their own, the value as JSON on one line, to be copied whole."""
    label = "paste" if paste.where == "config" else "author"
    head = f"{_INDENT}{page.paint(label, 'green')}{' ' * (LABEL_WIDTH - len(label))}"
    value = harmless(msgspec.json.encode(paste.value).decode())
    return [f"{head}{harmless(_key(paste))}:", f"{_INDENT * 2}{value}"]


def _key(paste: Paste) -> str:
    """A path as it is written in configuration errors: `a.b`, `a["b.c"]`."""
    from polyplex.config.source import key_text

    return key_text(paste.path)


def _summary(judged: Judged, limit: int | None, page: Terminal) -> str:
    """The last paragraph."""
    found = judged.findings
    counts = ", ".join(
        count(number, severity)
        for severity in SEVERITIES
        if (number := sum(each.severity == severity for each in found))
    )
    of_all = f"{count(judged.tools, 'tool')} of {count(judged.servers, 'server')}"
    lines = [f"{count(len(found), 'finding')} in {of_all}{f': {counts}' if counts else ''}"]
    if limit is not None and limit < len(found):
        lines.append(f"the worst {limit} are shown")
    measured = judged.measured
    after = measured.after if judged.overrides else None
    if measured.queries:
        lines.append(_rate("made of the tools' own words", measured.queries, measured.before, after))
    if measured.given:
        given_after = measured.given_after if judged.overrides else None
        lines.append(_rate("given", measured.given, measured.given_before, given_after))
    if judged.overrides:
        lines.append("polyplex lint --overrides prints all wordings as one fragment of the configuration")
    return "\n".join(page.wrapped(line, 0) for line in lines)


def _rate(what: str, queries: int, before: float, after: float | None) -> str:
    mended = "" if after is None else f", {after:.1%} with the proposed wordings"
    return f"{before:.1%} of {queries} queries {what} find another tool first{mended}"
