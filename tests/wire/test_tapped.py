"""A polyplex that runs as a process of its own reports what it sends and its revision does not allow."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import entry
from tests.wire import tapped, watch

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
DEADLINE_SECONDS = 60


def run(folder: Path, call: dict[str, Any]) -> Path:
    """Call a tool of a scripted server through a process; the report."""
    config, report = folder / "polyplex.json", folder / "report.jsonl"
    state = {"state": f"sqlite:{folder / 'state.db'}"}
    config.write_text(json.dumps({"mcpServers": {"a": entry(folder / "journal", {})}, "polyplex": state}), "utf-8")
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
    ]
    command = [*tapped.command(report), "serve", "--config", str(config), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 1:
            pass
        process.stdin.close()
        process.wait(DEADLINE_SECONDS)
    return report


def test_what_is_wrong_is_reported_to_the_test(tmp_path: Path) -> None:
    report = run(tmp_path, {"name": "a__result", "arguments": {"content": [{"type": "text"}]}})
    watch.follow(report)
    with pytest.raises(AssertionError, match="no CallToolResult of 2025-11-25"):
        watch.check({})
    watch.check({})


def test_what_is_right_leaves_no_report(tmp_path: Path) -> None:
    assert not run(tmp_path, {"name": "a__echo", "arguments": {}}).exists()
