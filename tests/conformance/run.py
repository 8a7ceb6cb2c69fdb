"""The official conformance suite as a gate: what passes directly must pass through polyplex, check by check.

    python tests/conformance/run.py [server|client|tasks|all] [--revision R] [--setup one|three] [--only SCENARIO]

The server leg runs the suite against fixture.py, directly and through polyplex: with the fixture as its only server
(`one`), with two more beside it (`three`), and with a fixture that does not speak the revision's era (`bridged`). The
client leg is for polyplex's other half: the suite is the server, and client_driver.py the client in front. The tasks
leg runs the scenarios of the tasks extension against fixture_tasks.py, directly and as in `one` and `three`. A check
that is SUCCESS directly and anything else through polyplex is a loss, SKIPPED and missing ones too.
Exits 1 on any loss, 2 when something does not start or fails directly, 3 when the suite cannot run here.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compare import Row, direct_row, flawless, table, through_row
from launch import HERE, StartError, await_tools, polyplex, server
from suite import REVISIONS, MissingError, Requirements, Results, Suite, find_suite

SETUPS = ("one", "three", "bridged")
USUAL_SETUPS = ("one", "three", "bridged")
OTHER_ERA = {"2025-11-25": "modern", "2026-07-28": "legacy"}
CLIENTS_AT_ONCE = 2
TIMED = ("server-stateless", "server-sse-polling", "sse-retry")
"""Scenarios that the suite judges by windows of 200 to 800 ms: run once more, alone, before they count as lost."""
LOSS, NO_BASIS, NO_SUITE = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, and where its files go."""

    revisions: tuple[str, ...]
    setups: tuple[str, ...]
    folder: Path
    only: str | None = None
    target: str | None = None
    verbose: bool = False


@dataclass(slots=True)
class Gate:
    """One run of the gate."""

    suite: Suite
    options: Options
    rows: list[Row] = field(default_factory=list[Row])

    async def server_leg(self) -> None:
        """The fixture, directly and behind each setup, at each revision."""
        folder = self.options.folder
        async with server("fixture.py", log=folder / "fixture.log") as fixture:
            for revision in self.options.revisions:
                wanted = self._wanted(revision, "server")
                if wanted is None:
                    continue
                direct = await self._server(fixture, revision, folder / revision / "direct")
                self._add(direct_row("server", revision, direct, wanted))
                for setup in ("target",) if self.options.target else self.options.setups:
                    here = folder / revision / setup
                    async with self._gateway(setup, revision, fixture, here) as url:
                        through = await self._server(url, revision, here / "results")
                    self._add(through_row("server", revision, setup, direct, through, wanted))

    async def client_leg(self) -> None:
        """The suite's mock servers, with the client directly before them and with polyplex between."""
        for revision in self.options.revisions:
            wanted = self._wanted(revision, "client")
            if wanted is None:
                continue
            direct = await self._clients(revision, wanted, through=False)
            self._add(direct_row("client", revision, direct, wanted))
            through = await self._clients(revision, wanted, through=True)
            self._add(through_row("client", revision, "one", direct, through, wanted))

    async def tasks_leg(self) -> None:
        """The scenarios of the tasks extension, which the modern revision alone has."""
        revision, folder = REVISIONS[-1], self.options.folder / "tasks"
        wanted = self._selected(self.suite.extension(revision, "tasks-"))
        if revision not in self.options.revisions or wanted is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        async with server("fixture_tasks.py", log=folder / "fixture.log") as fixture:
            direct = await self._tasks(fixture, revision, wanted, folder / "direct")
            self._add(direct_row("tasks", revision, direct, wanted))
            for setup in [setup for setup in self.options.setups if setup != "bridged"]:
                async with self._gateway(setup, revision, fixture, folder / setup, tool="slow_compute") as url:
                    through = await self._tasks(url, revision, wanted, folder / setup / "results")
                self._add(through_row("tasks", revision, setup, direct, through, wanted))

    async def _tasks(self, url: str, revision: str, wanted: Requirements, folder: Path) -> Results:
        slots = asyncio.Semaphore(CLIENTS_AT_ONCE)
        results: Results = {}

        async def run_one(scenario: str) -> None:
            async with slots:
                results.update(await self.suite.extended(url, revision, folder / scenario, scenario))

        async with asyncio.TaskGroup() as group:
            for scenario in wanted.scored:
                group.create_task(run_one(scenario))
        return results

    def _wanted(self, revision: str, leg: str) -> Requirements | None:
        return self._selected(self.suite.requirements(revision, leg))

    def _selected(self, wanted: Requirements) -> Requirements | None:
        """Of these scenarios the one that was asked for; None where it is none of them."""
        only = self.options.only
        if only is None:
            return wanted
        scored = tuple(name for name in wanted.scored if name == only)
        unscored = tuple(name for name in wanted.unscored if name == only)
        return Requirements(scored, unscored) if scored or unscored else None

    async def _server(self, url: str, revision: str, folder: Path) -> Results:
        results = await self.suite.server(url, revision, folder, self.options.only)
        for scenario in TIMED:
            if scenario in results and not flawless(results[scenario]):
                print(f"once more: {scenario} at {revision}", file=sys.stderr)
                results |= await self.suite.server(url, revision, folder / "again", scenario)
        return results

    async def _clients(self, revision: str, wanted: Requirements, *, through: bool) -> Results:
        command = [sys.executable, str(HERE / "client_driver.py"), *(["--through"] if through else [])]
        folder = self.options.folder / revision / ("client-through" if through else "client-direct")
        slots = asyncio.Semaphore(CLIENTS_AT_ONCE)
        results: Results = {}

        async def run_one(scenario: str) -> None:
            async with slots:
                results.update(await self.suite.client(command, scenario, revision, folder / scenario))

        async with asyncio.TaskGroup() as group:
            for scenario in (*wanted.scored, *wanted.unscored):
                group.create_task(run_one(scenario))
        for scenario in TIMED:
            if scenario in results and not flawless(results[scenario]):
                print(f"once more: {scenario} at {revision}", file=sys.stderr)
                results |= await self.suite.client(command, scenario, revision, folder / f"{scenario}-again")
        return results

    @asynccontextmanager
    async def _gateway(
        self, setup: str, revision: str, fixture: str, folder: Path, tool: str = "test_simple_text"
    ) -> AsyncGenerator[str]:
        if self.options.target:
            yield self.options.target
            return
        async with AsyncExitStack() as stack:
            servers: dict[str, dict[str, Any]] = {"fixture": {"url": fixture}}
            if setup == "three":
                log = folder.with_name("clock.log")
                clock = await stack.enter_async_context(server("neighbour.py", "clock", log=log))
                notes = {"command": sys.executable, "args": [str(HERE / "neighbour.py"), "notes"]}
                servers = {"notes": notes, **servers, "clock": {"url": clock}}
            elif setup == "bridged":
                log = folder.with_name("bridged.log")
                era = ("--era", OTHER_ERA[revision])
                servers["fixture"]["url"] = await stack.enter_async_context(server("fixture.py", *era, log=log))
            url = await stack.enter_async_context(polyplex(servers, folder))
            await await_tools(url, {tool} | ({"list_notes", "noon"} if setup == "three" else set()))
            yield url

    def _add(self, new: Row) -> None:
        self.rows.append(new)
        if self.options.verbose:
            print(table([new]), flush=True)


async def run(suite: Suite, options: Options, leg: str) -> list[Row]:
    """Run the legs; the rows of the table."""
    gate = Gate(suite, options)
    if leg in ("server", "all"):
        await gate.server_leg()
    if leg in ("client", "all") and not options.target:
        await gate.client_leg()
    if leg in ("tasks", "all") and not options.target:
        await gate.tasks_leg()
    return gate.rows


def main() -> int:
    """Parse the command line, run, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("leg", nargs="?", choices=["server", "client", "tasks", "all"], default="all")
    parser.add_argument("--revision", choices=REVISIONS, help="one revision instead of both")
    parser.add_argument("--setup", choices=SETUPS, help="one setup of the server leg instead of all")
    parser.add_argument("--only", metavar="SCENARIO", help="one scenario")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep results, configs and logs there")
    parser.add_argument("--target", metavar="URL", help="a running gateway before a fixture, instead of starting one")
    parser.add_argument("--installed-only", action="store_true", help="never install the suite")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each row as soon as it is there")
    arguments = parser.parse_args()
    try:
        suite = find_suite(install=not arguments.installed_only)
    except MissingError as error:
        print(error, file=sys.stderr)
        return NO_SUITE
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        options = Options(
            revisions=(arguments.revision,) if arguments.revision else REVISIONS,
            setups=(arguments.setup,) if arguments.setup else USUAL_SETUPS,
            folder=folder.resolve(),
            only=arguments.only,
            target=arguments.target,
            verbose=arguments.verbose,
        )
        try:
            rows = asyncio.run(run(suite, options, arguments.leg))
        except StartError as error:
            print(error, file=sys.stderr)
            return NO_BASIS
    print(table(rows))
    if not rows:
        print("no scenario of that name in what was to run", file=sys.stderr)
    if not rows or any(line.broken for line in rows):
        return NO_BASIS
    return LOSS if any(line.losses for line in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
