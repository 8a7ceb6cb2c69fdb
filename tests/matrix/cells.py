"""Running all checks of all pairs of a server, and what comes of each cell."""

import asyncio
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.matrix import checks_asks, checks_basics, checks_notices, checks_tasks
from tests.matrix.features import FEATURES, Feature
from tests.matrix.peer.words import REVISIONS
from tests.matrix.reasons import reason_for
from tests.matrix.stage import Front, Pair, front, transports

CHECK_SECONDS = 25.0
CHECKS = (checks_basics, checks_asks, checks_notices, checks_tasks)


class Outcome(StrEnum):
    """What a cell says."""

    NATIVE = "native"
    BRIDGED = "bridged"
    REDUCED = "reduced"
    ABSENT = "absent"
    FAILED = "failed"


@dataclass(frozen=True)
class Cell:
    """The outcome of one feature for one pair on one pair of transports."""

    feature: str
    client: str
    server: str
    client_transport: str
    server_transport: str
    outcome: Outcome
    detail: str = ""


async def run_server(folder: Path, revision: str, transport: str, only: Iterable[str] = ()) -> list[Cell]:
    """All cells of one server: every client revision, on every transport that it has."""
    cells: list[Cell] = []
    async with front(folder, revision, transport) as made:
        for client in REVISIONS:
            for client_transport in transports(client):
                cells += await run_pair(made, client, client_transport, only)
    return cells


async def run_pair(made: Front, revision: str, transport: str, only: Iterable[str] = ()) -> list[Cell]:
    """All cells of one pair. What should not have come on either side fails the feature during which it came."""
    cells: list[Cell] = []
    async with made.pair(revision, transport) as pair:
        for feature in FEATURES.values():
            if (not only or feature.name in only) and feature.applies(transport, made.server.transport):
                outcome, detail = await _outcome(pair, feature)
                where = (revision, made.server.revision, transport, made.server.transport)
                cells.append(Cell(feature.name, *where, outcome, detail))
    return cells


async def _outcome(pair: Pair, feature: Feature) -> tuple[Outcome, str]:
    reason = reason_for(feature.name, *pair.revisions)
    check = feature.check if reason is None or reason.kind == "reduced" else feature.absent
    sent, received = len(pair.server.violations()), len(pair.client.violations)
    try:
        if check is not None:
            async with asyncio.timeout(CHECK_SECONDS):
                await check(pair)
    except Exception as error:  # noqa: BLE001 - every failure is reported, all at once
        return Outcome.FAILED, _short(error)
    violations = pair.server.violations()[sent:] + pair.client.violations[received:]
    if violations:
        return Outcome.FAILED, "; ".join(violations)
    if reason is not None:
        return (Outcome.ABSENT if reason.kind == "absent" else Outcome.REDUCED), reason.name
    return (Outcome.BRIDGED if pair.bridged else Outcome.NATIVE), ""


def _short(error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/matrix/" in frame.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    line = frames[0 if len(frames) < 2 else 1].line if frames else ""
    return f"{place} {type(error).__name__} {str(error)[:300]} [{line}]"
