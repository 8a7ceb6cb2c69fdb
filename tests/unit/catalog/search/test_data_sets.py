"""Data sets that `just eval tools --data DIR` is given may be odd."""

import json
from pathlib import Path

import pytest

from eval import lint
from eval.datasets import load
from eval.tools import main

TOOLS = [
    {"id": "a/read", "server": "a", "name": "read", "description": None, "input_schema": None, "more": [1]},
    {"name": "b/write", "description": "Write a file."},
]
QUERIES = [
    {"id": 1, "text": "write a file", "relevant": ["b/write", "gone"], "grades": {}},
    {"id": 2, "text": "nothing that is there", "relevant": ["gone"]},
    {"id": 3, "text": "nothing at all", "relevant": [], "groups": []},
    {"id": 4, "text": "read", "relevant": [], "groups": [["gone", "a/read"], ["gone"]]},
]


def write(place: Path, tools: list[dict] = TOOLS, queries: list[dict] = QUERIES) -> None:
    place.mkdir(parents=True)
    for name, records in (("tools", tools), ("queries", queries)):
        text = "\r\n\n".join(map(json.dumps, records))
        (place / f"{name}.jsonl").write_text(text, encoding="utf-8-sig")


@pytest.mark.parametrize("place", ["metatool", "held/back/metatool"])
def test_what_cannot_be_found_does_not_count(tmp_path: Path, place: str) -> None:
    write(tmp_path / place)
    data = load(tmp_path, "metatool")
    assert data is not None
    assert [query.slots for query in data.queries] == [(frozenset({"b/write"}),), (frozenset({"a/read"}),)]
    assert [document.key for document in data.documents()] == ["a/read", "b/write"]


def test_the_folder_itself_may_be_the_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "bfcl")
    assert main(["--data", str(tmp_path / "bfcl"), "--tier", "none", "--no-costs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["polyplex"]["bfcl"]["H@1"] == 1.0


def test_a_set_without_usable_queries_is_no_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "bfcl", queries=QUERIES[1:3])
    assert load(tmp_path, "bfcl") is None
    assert main(["--data", str(tmp_path)]) == 2
    assert "has none of the sets" in capsys.readouterr().err


def test_a_broken_line_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "bfcl")
    (tmp_path / "bfcl" / "queries.jsonl").write_text('{"text": "x"}\n{"te', encoding="utf-8")
    assert main(["--data", str(tmp_path)]) == 2
    assert "queries.jsonl, line 2 is no JSON" in capsys.readouterr().err


def test_what_lint_changes_is_measured_on_any_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "deeper" / "bfcl", TOOLS, [*QUERIES, *QUERIES])
    monkeypatch.setattr("sys.argv", ["eval.lint", "--data", str(tmp_path), "--set", "bfcl", "--json"])
    assert lint.main() == 0
    assert json.loads(capsys.readouterr().out)[0]["scores"]["bfcl"]["R@10"] == 1.0
