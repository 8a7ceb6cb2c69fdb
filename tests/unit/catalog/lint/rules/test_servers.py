from polyplex.catalog.lint.facts import read_server
from polyplex.catalog.lint.rules import servers
from polyplex.mux.entries import SetAside
from tests.unit.catalog.lint.offers import raw_tool, server


def test_an_entry_that_is_set_aside_is_an_error() -> None:
    own = read_server("s", {}, set_aside=[SetAside("s", "broken", "it has no inputSchema")])
    (found,) = servers.set_aside(own)
    assert (found.severity, found.message) == ("error", "broken is not offered: it has no inputSchema")


def test_instructions_are_missed_where_there_are_many_tools_and_judged_where_they_are_long() -> None:
    many = [raw_tool(f"tool_{number}") for number in range(8)]
    assert [each.rule for each in servers.instructions(server(*many))] == ["instructions-missing"]
    assert list(servers.instructions(server(*many, instructions="Use tool_0 first."))) == []
    assert list(servers.instructions(server(*many[:7]))) == []
    (found,) = servers.instructions(server(instructions="Use every tool in its order. " * 400))
    assert found.rule == "instructions-long"


def test_what_costs_many_times_the_usual_is_named_with_its_reason() -> None:
    usual = [raw_tool(f"tool_{number}", "Does one small thing") for number in range(5)]
    wordy = raw_tool("wordy", "It does one thing after another and says so. " * 300)
    large = raw_tool("large", "Does it", {"hero": {"enum": [f"HERO_NUMBER_{number}" for number in range(400)]}})
    found = {each.name: each for each in servers.outliers([server(*usual, wordy, large)])}
    assert set(found) == {"wordy", "large"}
    assert "most of it its description" in found["wordy"].message
    assert found["wordy"].paste
    assert "the schema of hero" in found["large"].message
    assert list(servers.outliers([])) == []


def test_very_many_tools_are_a_note() -> None:
    assert [each.rule for each in servers.many_tools(server(*(raw_tool(f"t{n}") for n in range(41))))] == ["tools-many"]
    assert list(servers.many_tools(server(raw_tool("t")))) == []
