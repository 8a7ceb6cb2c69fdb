import re
from pathlib import Path

from polyplex.catalog.lint import findings
from polyplex.catalog.lint.findings import Finding, Severity, in_tool, ordered, override, overrides

ROOT = Path(__file__).resolve().parents[4]
RULE = re.compile(r'(?:rule=|(?:found|_minor)\(\s*tool,\s*|rule="[a-z-]+" if same else )"([a-z-]+)"')


def finding(severity: Severity, harm: float, name: str = "t", **more: object) -> Finding:
    return Finding(rule="r", severity=severity, harm=harm, server="s", name=name, message="m", advice="a", **more)  # type: ignore[arg-type]


def test_the_worst_comes_first_and_equals_by_name() -> None:
    given = [
        finding("note", 99),
        finding("error", 1, "b"),
        finding("warning", 5),
        finding("error", 1, "a"),
        finding("error", 2),
    ]
    assert [(each.severity, each.harm, each.name) for each in ordered(given)] == [
        ("error", 2, "t"),
        ("error", 1, "a"),
        ("error", 1, "b"),
        ("warning", 5, "t"),
        ("note", 99, "t"),
    ]


def test_overrides_are_one_fragment_and_the_first_word_stands() -> None:
    first = finding("error", 2, paste=(override("s", "t", "description", value="one"), in_tool("x", value=1)))
    second = finding(
        "note", 1, paste=(override("s", "t", "description", value="two"), override("s", "t", "name", value="n"))
    )
    assert overrides([first, second]) == {
        "polyplex": {"servers": {"s": {"tools": {"t": {"description": "one", "name": "n"}}}}}
    }
    assert overrides([]) == {}


def test_every_rule_is_in_the_guide_and_the_guide_has_no_other() -> None:
    package = Path(findings.__file__).parent
    rules = {rule for file in package.rglob("*.py") for rule in RULE.findall(file.read_text(encoding="utf-8"))}
    rules.add("tool-confused")
    guide = (ROOT / "docs" / "guides" / "lint.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in guide.splitlines() if line.startswith("| `")]
    assert {rule for row in rows for rule in re.findall(r"`([a-z-]+)`", row)} == rules
    assert len(rules) > 40
