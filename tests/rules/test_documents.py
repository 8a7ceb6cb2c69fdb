"""Links in the documents lead somewhere, and the JSON in the examples is JSON."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from polyplex.cli.arguments import parse
from polyplex.cli.commands import COMMANDS
from polyplex.config import load_config_dict
from tests.rules.sources import ROOT, files, shown

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```jsonc?\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"(?<!:)//.*|/\*.*?\*/")
SHELL = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(polyplex [a-z].*)$", re.MULTILINE)
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


def test_every_configuration_in_the_documents_can_be_used() -> None:
    """Nothing in them is unknown either. A fragment without braces is part of the `polyplex` object."""
    variables: dict[str, str] = dict.fromkeys(("DOCS_TOKEN", "KEY", "POLYPLEX_KEY", "SECRET"), "http://127.0.0.1:8000")
    found = 0
    for document in files("README.md", "docs/*.md"):
        for block in EXAMPLE.findall(document.read_text(encoding="utf-8")):
            data = _decoded(block)
            servers = data.setdefault("mcpServers", {})
            servers.pop("polyplex", None)
            for name in data.get("polyplex", {}).get("servers", {}):
                servers.setdefault(name, {"command": "x"})
            assert load_config_dict(data, environ=variables).warnings == (), (shown(document), block)
            found += 1
    assert found > 12


def _decoded(block: str) -> dict[str, Any]:
    bare = re.sub(r",(\s*[}\]])", r"\1", COMMENT.sub("", block))
    data: dict[str, Any] = json.loads(bare if bare.lstrip().startswith("{") else f'{{"polyplex": {{{bare}}}}}')
    return data if data.keys() & {"mcpServers", "polyplex"} else {}


def test_every_command_line_in_the_documents_parses() -> None:
    lines = [
        line
        for document in files("README.md", "docs/guides/*.md")
        for block in SHELL.findall(document.read_text(encoding="utf-8"))
        for line in COMMAND.findall(block)
    ]
    for line in lines:
        words = shlex.split(re.split(r" [|<>] ?", line)[0], comments=True)
        assert parse(words[1:]).command in COMMANDS, line
    assert len(lines) > 8


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
