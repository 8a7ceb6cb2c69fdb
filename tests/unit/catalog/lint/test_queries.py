import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.lint.queries import GivenError, names_of, of_tool, paraphrased, read_given
from tests.unit.catalog.lint.offers import raw_tool, server, tool

ONE = server(raw_tool("read"), raw_tool("write"), name="one")
TWO = server(raw_tool("read"), name="two")
TOOLS = [*ONE.tools, *TWO.tools]


def test_queries_are_made_of_the_tools_own_words() -> None:
    own = tool("get_paper", "Fetch the abstract of one paper", {"paper_id": {}}, schema={"required": ["paper_id"]})
    made = {query.text: query.own for query in of_tool(own)}
    assert made == {
        "get paper": True,
        "look up paper": False,
        "retrieve the abstract of one paper": False,
        "fetch abstract": True,
        "s: look up paper": False,
        "paper by paper id": True,
    }


def test_a_verb_is_said_otherwise_and_all_else_stays() -> None:
    assert paraphrased("Deletes a file") == "remove a file"
    assert paraphrased("files of a user") == "files of a user"
    assert paraphrased("get") == "get"


def test_a_tool_is_meant_by_every_name_that_is_its_alone() -> None:
    names = names_of(TOOLS)
    assert names["one/read"] == names["one.read"] == names["one__read"] == "one__read"
    assert names["write"] == "one__write"
    assert "read" not in names


def test_given_queries_are_read_and_unknown_names_told() -> None:
    data = b'{"text": "open it", "relevant": ["two/read", "none"]}\n\n{"text": "x", "relevant": ["read"], "id": 1}\n'
    queries, unknown = read_given(data, TOOLS)
    assert [(query.text, query.relevant) for query in queries] == [("open it", {"two__read"})]
    assert unknown == ["none", "read"]


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"text": "a"}', b'{"text": 1, "relevant": []}', b"\xff", b"[" * 2000])
def test_a_line_that_is_no_query_is_named(line: bytes) -> None:
    with pytest.raises(GivenError, match="line 2: no query"):
        read_given(b'{"text": "a", "relevant": []}\n' + line, TOOLS)


@given(st.text(max_size=20), st.text(max_size=100))
def test_queries_can_be_made_of_any_tool(name: str, text: str) -> None:
    found = of_tool(msgspec.structs.replace(tool("t", text), name=name))
    assert len(found) == len({each.text for each in found}) <= 6
