"""The compatibility matrix: 5 client revisions x 5 server revisions x every feature x every transport.

Each test is one server; its clients come one after another. Every cell has an outcome or a reason from the
specification, and all that fail are reported together. `just compatibility` writes results.json and the document anew.
"""

from pathlib import Path

import pytest

from tests.matrix.cells import Cell, Outcome, run_server
from tests.matrix.features import FEATURES
from tests.matrix.peer.words import REVISIONS
from tests.matrix.reasons import REASONS, reason_for
from tests.matrix.report import DOCUMENT, render
from tests.matrix.results import LETTERS, collect, letter, load
from tests.matrix.stage import transports

SERVERS = [(revision, transport) for revision in reversed(REVISIONS) for transport in transports(revision)]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("revision", "transport"), SERVERS)
async def test_every_client_with_a_server(tmp_path: Path, revision: str, transport: str) -> None:
    cells = await run_server(tmp_path, revision, transport)
    failed = [cell for cell in cells if cell.outcome is Outcome.FAILED]
    assert not failed, "\n" + "\n".join(map(_describe, failed))
    known = load()
    changed = [
        f"{_describe(cell)}: the document says {letter(known, cell.feature, cell.client, cell.server)}"
        for cell in cells
        if LETTERS[cell.outcome] != letter(known, cell.feature, cell.client, cell.server)
    ]
    assert not changed, "run `just compatibility`:\n" + "\n".join(changed)


def _describe(cell: Cell) -> str:
    client = f"{cell.client} over {cell.client_transport}"
    server = f"{cell.server} over {cell.server_transport}"
    return f"{cell.feature}: client {client}, server {server}: {cell.outcome} {cell.detail}"


def test_every_cell_has_been_tried() -> None:
    results = load()
    assert list(results) == list(FEATURES)
    for feature, rows in results.items():
        assert list(rows) == list(REVISIONS)
        for client, row in rows.items():
            for server, found in zip(REVISIONS, row, strict=True):
                reason = reason_for(feature, client, server)
                plain = "n" if (client == REVISIONS[-1]) == (server == REVISIONS[-1]) else "b"
                right = plain if reason is None else "-" if reason.kind == "absent" else "r"
                assert found == right, (feature, client, server)


def test_every_reason_is_needed_and_says_where_it_stands() -> None:
    names = [reason.name for reason in REASONS]
    assert len(names) == len(set(names))
    used = {reason_for(feature, client, server) for feature in FEATURES for client in REVISIONS for server in REVISIONS}
    assert set(REASONS) <= used
    for reason in REASONS:
        assert set(reason.features) <= set(FEATURES)
        assert reason.sentence
        assert reason.page.partition("/")[0] in (*REVISIONS, "ext-tasks")


def test_the_document_is_what_the_results_give() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == render(load()), "run `just compatibility`"


def test_a_cell_that_fails_on_one_transport_fails() -> None:
    one, other = (
        Cell("calls", REVISIONS[0], REVISIONS[0], "http", transport, outcome)
        for transport, outcome in (("http", Outcome.NATIVE), ("stdio", Outcome.FAILED))
    )
    for cells in ((one, other), (other, one)):
        assert collect(cells)["calls"][REVISIONS[0]] == "x????"
