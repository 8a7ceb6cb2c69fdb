"""Export tools to every provider and check each declaration against the published rules and the SDKs' types.

    python scripts/check_exports.py [--data DIR] [--show N]

DIR holds one folder for each set, with a tools.jsonl of `id`, `description` and `input_schema`. A declaration that
breaks a rule makes the command fail; tools that are set aside are counted and named with the reason.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from polyplex.catalog.export import Export, export  # noqa: E402
from tests.providers import sdks  # noqa: E402
from tests.providers.rules import CHECKS  # noqa: E402

FORMS = (
    ("openai", "chat", False),
    ("openai", "chat", True),
    ("openai", "responses", True),
    ("anthropic", "messages", False),
    ("gemini", "json_schema", False),
    ("gemini", "openapi", False),
)


def read_tools(path: Path) -> list[dict[str, Any]]:
    """Tools as in `tools/list`, named by their ids, which are unique and often illegal names."""
    tools: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        tools.append(
            {"name": fields["id"], "description": fields["description"], "inputSchema": fields["input_schema"]}
        )
    return tools


def problems_of(made: Export) -> list[str]:
    """What the provider's rules and its SDK find wrong."""
    found: list[str] = []
    check, typed = CHECKS[made.provider], sdks.installed(made.provider)
    for declaration in made.declarations:
        name = declaration.get("name") or declaration["function"]["name"]
        found += [f"{name}: {problem}" for problem in check(declaration)]
        if typed:
            try:
                sdks.tool_check(made.provider, made.form)(declaration)
            except ValueError as error:
                found.append(f"{name}: {error}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT / "tests" / "data" / "exports", metavar="DIR")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="how many problems and reasons to print")
    options = parser.parse_args()
    files = sorted(options.data.glob("*/tools.jsonl")) or sorted(options.data.glob("tools.jsonl"))
    if not files:
        print(f"{options.data} holds no tools.jsonl", file=sys.stderr)
        return 2
    missing = [provider for provider in CHECKS if not sdks.installed(provider)]
    if missing:
        print(f"without the types of the SDKs of {', '.join(missing)}: uv sync --group providers")
    failed = False
    for path in files:
        tools = read_tools(path)
        for provider, form, strict in FORMS:
            start = time.process_time()
            made = export(provider, tools, form=form, strict=strict)
            spent = time.process_time() - start
            problems = problems_of(made)
            failed |= bool(problems)
            loose = sum(bool(tool.notes) for tool in made.exported)
            print(
                f"{path.parent.name:18} {provider}/{form}{'/strict' if strict else '':8} tools {len(tools):5}"
                f"  exported {len(made.exported):5}  problems {len(problems):3}  aside {len(made.aside):3}"
                + (f"  not strict {loose}" if strict else "")
                + f"  {spent * 1e6 / max(len(tools), 1):.0f} us each"
            )
            for problem in problems[: options.show]:
                print(f"    {problem}")
            reasons = Counter(entry.reason for entry in made.aside)
            for reason, count in reasons.most_common(options.show):
                print(f"    aside: {count} x {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
