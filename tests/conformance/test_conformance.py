"""The conformance gate as tests: one for each leg and revision. run.py is the tool behind it, and prints more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire import watch

HERE = Path(__file__).resolve().parent
GATE_SECONDS = 400
LOST = 1
CANNOT_RUN = 3

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(GATE_SECONDS + 20)]


def run_gate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the gate; skips where the suite cannot run, but fails there in CI, which installs everything first."""
    command = [sys.executable, str(HERE / "run.py"), *arguments, "--installed-only"]
    gate = subprocess.run(command, capture_output=True, text=True, timeout=GATE_SECONDS, check=False)
    if gate.returncode == CANNOT_RUN and not os.environ.get("CI"):
        pytest.skip(gate.stderr.strip())
    return gate


ODD_ANSWERS = pytest.mark.off_schema(
    "params/inputResponses", reason="the suite tries answers that are none; between modern peers they pass as they are"
)


@pytest.mark.parametrize(
    ("leg", "revision"),
    [
        ("server", "2025-11-25"),
        pytest.param("server", "2026-07-28", marks=ODD_ANSWERS),
        ("client", "2025-11-25"),
        ("client", "2026-07-28"),
    ],
)
def test_nothing_is_lost_through_polyplex(leg: str, revision: str, tmp_path: Path) -> None:
    gate = run_gate(leg, "--revision", revision, "--keep", str(tmp_path))
    assert gate.returncode == 0, f"{gate.stdout}{gate.stderr}"
    for report in tmp_path.rglob("wire.jsonl"):
        watch.follow(report)


def test_nothing_of_the_tasks_extension_is_lost(tmp_path: Path) -> None:
    gate = run_gate("tasks", "--keep", str(tmp_path))
    assert gate.returncode == 0, f"{gate.stdout}{gate.stderr}"


def test_the_gate_notices_what_another_server_lacks() -> None:
    clock = [sys.executable, str(HERE / "neighbour.py"), "clock"]
    with subprocess.Popen(clock, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            gate = run_gate("server", "--revision", "2026-07-28", "--only", "tools-call-image", "--target", url)
        finally:
            process.terminate()
    assert gate.returncode == LOST, f"{gate.stdout}{gate.stderr}"
    assert "LOSS server 2026-07-28 target: tools-call-image: tools-call-image" in gate.stdout
