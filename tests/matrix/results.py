"""What a run came to: one letter a cell, kept in results.json, of which docs/compatibility.md is made."""

import json
from collections.abc import Iterable
from pathlib import Path

from tests.matrix.cells import Cell, Outcome
from tests.matrix.features import FEATURES
from tests.matrix.peer.words import REVISIONS

HERE = Path(__file__).parent
FILE = HERE / "results.json"
Results = dict[str, dict[str, str]]
"""By feature and client revision: a letter for each server revision, the oldest first."""
LETTERS = {
    Outcome.NATIVE: "n",
    Outcome.BRIDGED: "b",
    Outcome.REDUCED: "r",
    Outcome.ABSENT: "-",
    Outcome.FAILED: "x",
}
UNTRIED = "?"
# The worst outcome of a cell over all transports is what the document says.
_RANK = "x?-rbn"


def collect(cells: Iterable[Cell]) -> Results:
    """The letters of all cells; what was not tried is `?`."""
    found: dict[tuple[str, str, str], str] = {}
    for cell in cells:
        key = (cell.feature, cell.client, cell.server)
        letter = LETTERS[cell.outcome]
        found[key] = min(found.get(key, letter), letter, key=_RANK.index)
    return {
        feature: {
            client: "".join(found.get((feature, client, server), UNTRIED) for server in REVISIONS)
            for client in REVISIONS
        }
        for feature in FEATURES
    }


def load() -> Results:
    """The results of the last run of `just compatibility`."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def save(results: Results) -> None:
    """Keep the results."""
    FILE.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def letter(results: Results, feature: str, client: str, server: str) -> str:
    """The outcome of a cell."""
    return results[feature][client][REVISIONS.index(server)]
