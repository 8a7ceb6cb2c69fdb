"""Run the compatibility matrix, and write docs/compatibility.md and tests/matrix/results.json from what it came to.

    python -m tests.matrix.write [--document]      with --document: only the document, from the results of before

Exits with 1 where a cell failed; the document says so too.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.matrix.cells import Cell, Outcome, run_server
from tests.matrix.peer.words import REVISIONS
from tests.matrix.report import DOCUMENT, render
from tests.matrix.results import collect, load, save
from tests.matrix.stage import transports

PARALLEL = 2


async def run() -> list[Cell]:
    """All cells of all servers."""
    limit = asyncio.Semaphore(PARALLEL)

    async def one(revision: str, transport: str, folder: Path) -> list[Cell]:
        async with limit:
            cells = await run_server(folder, revision, transport)
            failed = sum(cell.outcome is Outcome.FAILED for cell in cells)
            print(f"server {revision} over {transport}: {len(cells)} cells, {failed} failed", flush=True)
            return cells

    with tempfile.TemporaryDirectory() as temporary:
        parent = Path(temporary)
        servers = [(revision, transport) for revision in REVISIONS for transport in transports(revision)]
        folders = [parent / "-".join(server) for server in servers]
        for folder in folders:
            folder.mkdir()
        runs = [one(*server, folder) for server, folder in zip(servers, folders, strict=True)]
        return [cell for cells in await asyncio.gather(*runs) for cell in cells]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", action="store_true", help="only make the document again")
    failed: list[Cell] = []
    if not parser.parse_args().document:
        cells = asyncio.run(run())
        failed = [cell for cell in cells if cell.outcome is Outcome.FAILED]
        save(collect(cells))
        for cell in failed:
            print(cell)
    DOCUMENT.write_text(render(load()), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
