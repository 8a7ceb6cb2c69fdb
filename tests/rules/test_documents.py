"""Links in the documents lead somewhere, and the JSON in the examples is JSON."""

import json
import re
from pathlib import Path

from tests.rules.sources import ROOT, files, shown

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def test_every_relative_link_resolves() -> None:
    documents = files("*.md")
    assert ROOT / "README.md" in documents
    broken = [
        f"{shown(document)}: {link}"
        for document in documents
        for link in _links(document)
        if _is_broken(document, link)
    ]
    assert broken == []


def test_every_json_example_without_comments_parses() -> None:
    for example in files("examples/*.json"):
        assert isinstance(json.loads(example.read_text(encoding="utf-8")), dict), shown(example)


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "# One `code` two\n[a](page.md#one-code-two) [b](page.md#three) [c](none.md)\n", encoding="utf-8"
    )
    assert [link for link in _links(document) if _is_broken(document, link)] == ["page.md#three", "none.md"]


def _links(document: Path) -> list[str]:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(CODE.sub("", text)) if not ELSEWHERE.match(link)]


def _is_broken(document: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    goal = document.parent / name if name else document
    if not goal.exists():
        return True
    return bool(anchor) and goal.suffix == ".md" and anchor not in _anchors(goal)


def _anchors(document: Path) -> set[str]:
    """Ids that the usual renderers give the headings of a page."""
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
