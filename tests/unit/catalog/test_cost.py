from polyplex.catalog.cost import cost_of_list, cost_of_server, cost_of_tool
from polyplex.mux.entries import Entry
from tests.unit.catalog.lint.offers import entry, raw_tool


def words(text: str) -> int:
    """A count that is easy to follow."""
    return len(text.split())


def test_a_tool_costs_what_a_model_gets_of_it() -> None:
    found = cost_of_tool(entry("tools", raw_tool("t", "one two three", outputSchema={"type": "object"})), len)
    shown = '{"name":"s__t","description":"one two three","input_schema":{"type":"object","properties":{}}}'
    assert (found.tokens, found.description_tokens) == (len(shown), len("one two three"))
    assert found.local == "t"


def test_a_server_costs_the_sum_of_its_tools_dearest_first() -> None:
    lists = {
        "tools": [entry("tools", raw_tool("a", "one")), entry("tools", raw_tool("b", "one two three"))],
        "resources": [entry("resources", {"uri": "x://y", "name": "y"})],
        "prompts": [entry("prompts", {"name": "p"}), entry("prompts", {"name": "q"})],
    }
    found = cost_of_server("s", lists, "four words are here", words)
    assert [each.local for each in found.tools] == ["b", "a"]
    assert found.tokens == sum(each.tokens for each in found.tools) == cost_of_list(lists["tools"], words)
    assert (found.instructions_tokens, found.resources, found.prompts) == (4, 1, 2)
    assert found.resources_tokens > 0


def test_an_entry_that_cannot_be_read_costs_its_name() -> None:
    assert cost_of_tool(Entry("s", "t", "s__t", b"{"), len).tokens == len(
        '{"name":"s__t","description":"","input_schema":{}}'
    )
