import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polyplex.catalog.lint.facts import read_server
from polyplex.catalog.lint.findings import SEVERITIES, overrides
from polyplex.catalog.lint.judge import judge, judged, reworded
from polyplex.catalog.search.index import SearchIndex
from polyplex.config import load_config_dict
from polyplex.mux.entries import Entry, Naming, read_entry
from tests.unit.catalog.lint.offers import raw_tool, server
from tests.unit.catalog.lint.test_facts import JSON

TOOL = st.fixed_dictionaries(
    {"name": st.text(max_size=12)},
    optional={
        "description": st.text(max_size=60) | JSON,
        "annotations": st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint"]), JSON, max_size=2) | JSON,
        "title": JSON,
        "outputSchema": JSON,
        "inputSchema": st.fixed_dictionaries(
            {"type": st.just("object")}, optional={"properties": st.dictionaries(st.text(max_size=6), JSON, max_size=3)}
        ),
    },
)


@settings(deadline=None)
@given(st.lists(TOOL, max_size=4), st.text(max_size=10), st.text(max_size=60))
def test_whatever_servers_offer_is_judged_and_the_words_fit_the_configuration(
    tools: list[dict[str, Any]], name: str, instructions: str
) -> None:
    naming = Naming(name, name, prefix=True)
    read = [read_entry("tools", json.dumps(tool).encode(), naming) for tool in tools]
    own = read_server(name, {"tools": [each for each in read if isinstance(each, Entry)]}, instructions=instructions)
    report = judge([own], SearchIndex())
    for found in report.findings:
        assert found.severity in SEVERITIES
        assert 0 <= found.harm <= 100
        assert found.message
        assert found.advice
    fragment = overrides(report.findings)
    config = load_config_dict({"mcpServers": {name or "s": {"command": "x"}}, **json.loads(json.dumps(fragment))})
    assert not [warning for warning in config.warnings if "unknown key" in warning]
    reworded([own], fragment)


def test_findings_come_worst_first_and_the_same_each_time() -> None:
    own = server(
        raw_tool("delete_all", "Deletes all files of the folder", annotations={"readOnlyHint": True}),
        raw_tool("list_files"),
        raw_tool("get_data", "Gets the data of the thing at hand", {"data": {}}),
        name="files",
    )
    found = judge([own]).findings
    assert [each.rule for each in found][:2] == ["annotation-contradicts", "description-missing"]
    ranks = [SEVERITIES.index(each.severity) for each in found]
    assert ranks == sorted(ranks)
    assert found == judge([own]).findings


def test_a_tool_in_the_proposed_words_has_fewer_findings() -> None:
    own = server(
        raw_tool("get_story", None, {"id": {"type": "string"}}),
        raw_tool("list_stories", "This tool allows you to lists the stories of one day", {"day": {"type": "string"}}),
        name="news",
    )
    before = list(judged([own]))
    after = list(judged(reworded([own], overrides(before))))
    assert {"description-missing", "description-hollow"} <= {each.rule for each in before}
    assert not {"description-missing", "description-hollow"} & {each.rule for each in after}


def test_the_worse_finding_wins_where_two_propose_words_for_one_key() -> None:
    own = server(raw_tool("delete_all", "This tool allows you to delete all", annotations={"readOnlyHint": True}))
    fragment = overrides(judge([own]).findings)
    told = fragment["polyplex"]["servers"]["s"]["tools"]["delete_all"]["description"]
    assert told.endswith("whatever its annotations say.")
