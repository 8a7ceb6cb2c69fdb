"""Compares a run through a gateway with the direct run, check by check, and prints the table."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from suite import STATUSES, Check, Requirements, Results

EQUALLY_VALID = {
    # A server may answer a POST with a JSON object or with a stream; the suite notes the former as INFO.
    ("server-sse-multiple-streams", "server-sse-streams-functional"): "INFO",
}


NOT_BRIDGEABLE = {
    # "Keys are server-assigned string identifiers" (2026-07-28, basic/patterns/mrtr). A handshake-era server asks
    # without a key, so the gateway has to make one up, and cannot know answers that come before the question: these
    # two scenarios send or expect the server's own key, `user_name`.
    "input-required-result-basic-elicitation": ("sep-2322-elicitation-incomplete", "sep-2322-elicitation-complete"),
    "input-required-result-ignore-extra-params": ("sep-2322-ignore-unexpected-params",),
    # "Resumable SSE streams via `Last-Event-ID` are not supported" (2026-07-28, basic/transports/streamable-http): a
    # stateless server cannot close a stream and ask to be polled, which is what the scenario's tool does.
    "server-sse-polling": ("server-sse-priming-event", "server-sse-retry-field", "server-sse-disconnect-resume"),
}


@dataclass(frozen=True, slots=True)
class Loss:
    """A check that is SUCCESS directly and is not through the gateway, or a failure that only the gateway has."""

    scenario: str
    check: Check
    scored: bool

    def __str__(self) -> str:
        note = "" if self.scored else " (unscored)"
        return f"{self.scenario}{note}: {self.check.id} {self.check.name}: {self.check.status}: {self.check.message}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    leg: str
    revision: str
    setup: str
    scenarios: str
    direct: str
    through: str
    losses: tuple[Loss, ...] = ()
    broken: tuple[str, ...] = ()
    """Scored scenarios that fail directly: then the comparison says little."""


def counts(checks: Iterable[Check]) -> tuple[int, int]:
    """Checks that are SUCCESS, and all of them."""
    statuses = [check.status for check in checks if check.status in STATUSES]
    return statuses.count("SUCCESS"), len(statuses)


def passes(checks: list[Check] | None) -> bool:
    """Whether a scenario passes by the suite's own measure: it ran, and nothing in it failed."""
    return bool(checks) and all(check.status != "FAILURE" for check in checks)


def flawless(checks: list[Check]) -> bool:
    """Whether every check of a scenario is SUCCESS."""
    good, total = counts(checks)
    return good == total


def losses(direct: Results, through: Results, wanted: Requirements) -> list[Loss]:
    """Every loss, in the order of the scenarios."""
    found: list[Loss] = []
    for scenario in (*wanted.scored, *wanted.unscored):
        scored = scenario in wanted.scored
        lost = _scenario_losses(scenario, direct.get(scenario, []), through.get(scenario, []))
        found.extend(Loss(scenario, check, scored) for check in lost)
    return found


def _scenario_losses(scenario: str, direct: list[Check], through: list[Check]) -> list[Check]:
    seen: dict[tuple[str, str], list[Check]] = defaultdict(list)
    for check in through:
        seen[check.id, check.name].append(check)
    wanted = Counter((check.id, check.name) for check in direct if check.status == "SUCCESS")
    lost: list[Check] = []
    for key, number in wanted.items():
        valid = {"SUCCESS", EQUALLY_VALID.get((scenario, key[0]), "SUCCESS")}
        missing = number - sum(check.status in valid for check in seen[key])
        bad = [check for check in seen[key] if check.status not in valid]
        bad += [Check(*key, "MISSING", "the check was not made")] * max(0, missing - len(bad))
        lost.extend(bad[: max(0, missing)])
    failed_directly = {(check.id, check.name) for check in direct if check.status == "FAILURE"}
    new = {key: checks for key, checks in seen.items() if key not in wanted and key not in failed_directly}
    lost.extend(check for checks in new.values() for check in checks if check.status == "FAILURE")
    return lost


def direct_row(leg: str, revision: str, direct: Results, wanted: Requirements) -> Row:
    """The line of the direct run itself."""
    good, total = counts(_all(direct, wanted.scored))
    broken = tuple(name for name in wanted.scored if not passes(direct.get(name)))
    scenarios = f"{len(wanted.scored) - len(broken)}/{len(wanted.scored)}"
    return Row(leg, revision, "direct", scenarios, f"{good}/{total}", "", broken=broken)


def through_row(leg: str, revision: str, setup: str, direct: Results, through: Results, wanted: Requirements) -> Row:
    """The line of one run through a gateway."""
    passed = sum(passes(through.get(name)) for name in wanted.scored)
    good, total = counts(_all(direct, wanted.scored))
    through_good, through_total = counts(_all(through, wanted.scored))
    lost = losses(direct, through, wanted)
    if setup == "bridged":
        lost = [loss for loss in lost if loss.check.id not in NOT_BRIDGEABLE.get(loss.scenario, ())]
    scenarios = f"{passed}/{len(wanted.scored)}"
    return Row(leg, revision, setup, scenarios, f"{good}/{total}", f"{through_good}/{through_total}", tuple(lost))


def _all(results: Results, names: Iterable[str]) -> list[Check]:
    return [check for name in names for check in results.get(name, [])]


def table(rows: list[Row]) -> str:
    """The rows in columns, and under them each loss."""
    head = ("leg", "revision", "setup", "scenarios", "checks direct", "checks through", "losses")
    body = [
        (r.leg, r.revision, r.setup, r.scenarios, r.direct, r.through, str(len(r.losses)) if r.through else "")
        for r in rows
    ]
    widths = [max(len(line[column]) for line in (head, *body)) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *body)]
    for r in rows:
        lines.extend(f"FAILS DIRECTLY {r.leg} {r.revision}: {scenario}" for scenario in r.broken)
        lines.extend(f"LOSS {r.leg} {r.revision} {r.setup}: {loss}" for loss in r.losses)
    return "\n".join(line.rstrip() for line in lines)
