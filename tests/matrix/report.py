"""docs/compatibility.md out of the results."""

from collections.abc import Iterable
from pathlib import Path

from tests.matrix.features import FEATURES, Feature
from tests.matrix.peer.words import REVISIONS
from tests.matrix.reasons import Reason, reason_for
from tests.matrix.results import Results, letter

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
MARKS = {"n": "✓", "b": "⇄", "r": "◐", "-": "–", "x": "✗", "?": "?"}
WORKING = "nb"
HEAD = """\
# Compatibility

Any client with any server: five revisions of the Model Context Protocol on the client's side, five on the server's, and
polyplex between them. This page is made from a test run (`just compatibility`), not written by hand: every mark below
is the outcome of a real `polyplex serve` between a client and a server of exactly these revisions.

Find the row of your client's revision and the column of your server's. `polyplex doctor` prints the revision of each
server; a client of before mid-2026 speaks one of the first four.

| mark | meaning |
|:---:|---|
| ✓ | works, both sides speak in the same way |
| ⇄ | works, polyplex translates between the handshake revisions (up to 2025-11-25) and the stateless one (2026-07-28) |
| ◐ | works in the poorer form that the client's revision has; nothing is lost in silence |
| – | one of the two revisions has no such thing, as the note below the table says |
"""
FAILING = "| ✗ | does not work yet |\n"


def render(results: Results) -> str:
    """The document."""
    parts = [HEAD + (FAILING if _letters(results) & {"x", "?"} else ""), _transports(), _everywhere(results)]
    groups = dict.fromkeys(feature.group for feature in FEATURES.values())
    for group in groups:
        shown = [each for each in FEATURES.values() if each.group == group and not _plain(results, each)]
        if shown:
            parts.append(f"## {group}\n")
            parts += [_section(results, feature) for feature in shown]
    return "\n".join(parts)


def _letters(results: Results) -> set[str]:
    return set("".join(row for rows in results.values() for row in rows.values()))


def _plain(results: Results, feature: Feature) -> bool:
    return set("".join(results[feature.name].values())) <= set(WORKING)


def _transports() -> str:
    return """\
Each pair is tried over every combination of transports: stdio and Streamable HTTP on both sides, and HTTP+SSE where a
side is of 2024-11-05. A mark stands for all of them; what exists over one transport only says so.

The servers and clients behind the marks are written for the matrix: they have what their revision has, refuse what it
has not, and report it. Beside them real peers meet in the tests, all with all: the official Python SDK in the releases
that spoke each revision first (1.7, 1.9, 1.12, 1.26, 2.3), as clients and as servers; and in the interoperability tests
the TypeScript SDK, FastMCP, the inspector and the reference servers.
"""


def _everywhere(results: Results) -> str:
    """The features that have no gap, in one list: they have the same table."""
    plain = [feature for feature in FEATURES.values() if _plain(results, feature)]
    if not plain:
        return ""
    lines = ["## Works in all 25 pairs\n", _table(results, plain[0], {}), "| feature | what holds |", "|---|---|"]
    lines += [f"| {feature.title} | {feature.holds} |" for feature in plain]
    return "\n".join(lines) + "\n"


def _section(results: Results, feature: Feature) -> str:
    notes = _notes(feature)
    lines = [f"### {feature.title}\n", f"{feature.holds}{_only(feature)}\n", _table(results, feature, notes)]
    lines += [_note(number, reason) for reason, number in notes.items()]
    return "\n".join(lines) + "\n"


def _only(feature: Feature) -> str:
    if not feature.applies("stdio", "http"):
        return " Exists where the client speaks Streamable HTTP."
    if not feature.applies("http", "stdio"):
        return " Exists where the server speaks Streamable HTTP."
    return ""


def _notes(feature: Feature) -> dict[Reason, int]:
    """The reasons of a feature, numbered in the order in which a reader meets them."""
    found = (reason_for(feature.name, client, server) for client in REVISIONS for server in REVISIONS)
    return {reason: number for number, reason in enumerate(dict.fromkeys(_present(found)), 1)}


def _present(reasons: Iterable[Reason | None]) -> list[Reason]:
    return [reason for reason in reasons if reason is not None]


def _table(results: Results, feature: Feature, notes: dict[Reason, int]) -> str:
    head = "| client ↓  server → | " + " | ".join(REVISIONS) + " |"
    lines = [head, "|---|" + ":---:|" * len(REVISIONS)]
    for client in REVISIONS:
        cells = [_cell(results, feature, client, server, notes) for server in REVISIONS]
        lines.append(f"| **{client}** | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(results: Results, feature: Feature, client: str, server: str, notes: dict[Reason, int]) -> str:
    found = letter(results, feature.name, client, server)
    reason = reason_for(feature.name, client, server) if found in "-r" else None
    return MARKS[found] + (f" <sup>{notes[reason]}</sup>" if reason in notes else "")


def _note(number: int, reason: Reason) -> str:
    sentence = reason.sentence.replace("](/specification/", "](https://modelcontextprotocol.io/specification/")
    page = f"[{reason.page.replace('/', ', ')}]({reason.link})"
    return f"{number}. {reason.text} <br>“{sentence}” ({page})"
