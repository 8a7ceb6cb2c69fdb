from polyplex.catalog.lint.rules import names
from tests.unit.catalog.lint.offers import raw_tool, server


def test_a_name_that_is_not_legal_gets_a_better_one() -> None:
    own = server(raw_tool("read.file/now"), raw_tool("read_file"))
    (found,) = names.illegal(own.tools[0], own)
    assert found.paste[0].path[-1] == "name"
    assert found.paste[0].value == "read_file_now"
    assert list(names.illegal(own.tools[1], own)) == []


def test_a_name_that_is_too_long_is_cut_between_words_and_a_taken_one_not_proposed() -> None:
    long = "get_all_the_items_of_the_list_that_the_user_has_opened_last_week"
    own = server(raw_tool(long), name="server")
    (found,) = names.illegal(own.tools[0], own)
    assert found.paste[0].value == "get_all_the_items_of_the_list_that_the_user_has_opened"
    own = server(raw_tool("a.b"), raw_tool("a_b"))
    assert next(names.illegal(own.tools[0], own)).paste == ()


def test_a_server_name_that_shortens_all_names_is_the_finding() -> None:
    own = server(raw_tool("list"), raw_tool("read"), name="Ant Design: docs")
    assert [each for tool in own.tools for each in names.illegal(tool, own)] == []
    (found,) = names.server_name(own)
    assert "name it Ant-Design-docs" in found.advice
    assert len(found.others) == 2
    assert list(names.server_name(server(raw_tool("list")))) == []


def test_twins_are_named_once() -> None:
    own = server(raw_tool("getComment"), raw_tool("get_comments"), raw_tool("get_comment_tree"))
    assert [(each.name, each.others) for each in names.twins(own)] == [("get_comments", ("s__getComment",))]


def test_odd_styles_are_named() -> None:
    own = server(*map(raw_tool, ("read_file", "write_file", "listFiles", "ping")))
    (found,) = names.style(own)
    assert found.message == "2 names are in snake_case, listFiles not"
    assert list(names.style(server(*map(raw_tool, ("read_file", "ping"))))) == []
