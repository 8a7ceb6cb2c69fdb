"""`polyplex lint` and `polyplex cost` as processes, in front of a real server process."""

import json
import sys
from pathlib import Path

import pytest

from polyplex.store.usage import Counts, UsageStore
from tests.process.cli import SERVER, Home

TOOLS = """
TOOLS = [
    {"name": "get_story",
     "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}},
    {"name": "list_stories", "description": "Lists the stories of one day", "inputSchema": {"type": "object"}},
    {"name": "delete_all", "description": "Deletes every story", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
]
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    start, end = SERVER.index("TOOLS = ["), SERVER.index("def send")
    (tmp_path / "news.py").write_text(SERVER[:start] + TOOLS.lstrip() + SERVER[end:], encoding="utf-8")
    home.configure({"news": news(home)})
    return home


def news(home: Home) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-S", str(home.folder / "news.py")]}


def test_lint_prints_the_worst_first_and_fails(home: Home) -> None:
    result = home.run("lint")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("error    news__delete_all  annotation-contradicts\n")
    assert "\nerror    news__get_story  description-missing\n" in result.stdout
    assert "paste    polyplex.servers.news.tools.get_story.description:\n" in result.stdout
    assert "findings in 3 tools of 1 server" in result.stdout


def test_lint_fails_from_the_level_that_is_asked_for(home: Home) -> None:
    assert home.run("lint", "--fail-on", "never").returncode == 0
    wrong = home.run("lint", "--fail-on", "fatal")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_the_proposed_words_can_be_pasted_and_then_their_findings_are_gone(home: Home) -> None:
    fragment = home.run("lint", "--overrides").stdout
    assert fragment.startswith('{\n  "polyplex": {\n    "servers": {\n')
    proposed = json.loads(fragment)
    told = proposed["polyplex"]["servers"]["news"]["tools"]["get_story"]
    assert told["description"] == "Get story (news). Takes id."
    home.configure({"news": news(home)}, **proposed["polyplex"])
    found = json.loads(home.run("lint", "--json").stdout)["findings"]
    assert "description-missing" not in {each["rule"] for each in found}
    assert "Get story (news)." in home.run("tools").stdout


def test_given_queries_are_measured(home: Home) -> None:
    queries = home.folder / "queries.jsonl"
    queries.write_text('{"text": "stories of one day", "relevant": ["get_story"]}\n', encoding="utf-8")
    found = json.loads(home.run("lint", "--json", "--queries", "queries.jsonl").stdout)
    assert found["measured"]["given"] == 1
    assert found["measured"]["given_before"] == 1.0
    confused = [each for each in found["findings"] if each["rule"] == "tool-confused"]
    assert [(each["key"], each["others"]) for each in confused] == [("news__get_story", ["news__list_stories"])]


def test_mistakes_are_said_before_a_server_is_started(home: Home) -> None:
    home.configure({"one": home.good})
    (home.folder / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    for words, said in (
        (["ones"], "there is no server 'ones' in the configuration; did you mean one?"),
        (["--queries", "bad.jsonl"], "--queries: line 1: no query"),
        (["-k", "0"], "-k takes a number from 1 on"),
    ):
        result = home.run("lint", *words)
        assert (result.returncode, result.stdout) == (2, "")
        assert said in result.stderr
    missing = home.run("lint", "--queries", "none.jsonl")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert home.children() == []


def test_lint_and_cost_fail_where_no_server_starts(home: Home) -> None:
    home.configure({"two": home.dying})
    for command in ("lint", "cost"):
        result = home.run(command)
        assert result.returncode == 1
        assert "TEST_KEY is not set" in result.stderr


def test_without_servers_there_is_nothing_to_say(home: Home) -> None:
    home.configure({})
    for command in ("lint", "cost"):
        assert home.run(command).returncode == 0


def test_cost_shows_tools_and_what_results_have_cost(home: Home) -> None:
    state = home.folder / "state.db"
    home.configure({"news": news(home)}, state=f"sqlite:{state}", toolBudgetTokens=1)
    store = UsageStore(state)
    of_others = Counts(99, 1_000_000, 250_000, 0)
    store.add({("news", "get_story"): Counts(7, 40_000, 9_876, 30_000), ("elsewhere", "x"): of_others})
    store.close()
    result = home.run("cost", "--tokenizer", "estimate")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["server", "and", "tools", "tokens", "share", "calls", "result", "tokens"]
    (story,) = [line.split() for line in lines if line.startswith("  news__get_story")]
    assert story[-2:] == ["7", "9,876"]
    assert "tokens   estimate, so about: name, description and input schema of each tool" in lines
    assert any(line.startswith("auto     lists") and "search tools among them" in line for line in lines)
    assert any(line.startswith("budget   1 tokens for all tools, which auto estimates at ") for line in lines)
    assert any(
        line.startswith("results  about 9,876 tokens in 7 calls, of 40,000 bytes, 30,000 bytes") for line in lines
    )


def test_cost_as_json_adds_up(home: Home) -> None:
    home.configure({"news": news(home), "one": home.good}, state=f"sqlite:{home.folder / 'state.db'}")
    found = json.loads(home.run("cost", "--json", "--tokenizer", "estimate").stdout)
    assert (found["tokenizer"], found["exact"]) == ("estimate", False)
    assert found["tokens"] == sum(server["tokens"] for server in found["servers"])
    assert all(server["tokens"] == sum(tool["tokens"] for tool in server["tools"]) for server in found["servers"])
    assert found["results"]["tools"] == []
    assert found["auto"]["lists"] == "all"
    assert found["auto"]["saved"] == 0


def test_a_state_database_that_cannot_be_read_is_a_warning(home: Home) -> None:
    state = home.folder / "state.db"
    state.write_bytes(b"no database at all, but long enough to be taken for one" * 20)
    home.configure({"news": news(home)}, state=f"sqlite:{state}")
    result = home.run("cost", "--tokenizer", "estimate")
    assert result.returncode == 0
    assert "what results cost is not known" in result.stderr
    assert "news__get_story" in result.stdout
