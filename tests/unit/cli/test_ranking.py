"""Searching tools by words."""

from polyplex.cli.ranking import rank, words

TOOLS = [
    {"name": "git__git_log", "description": "Shows the commit logs"},
    {"name": "files__read_file", "description": "Read the complete contents of a file as text."},
    {"name": "files__write_file", "description": "Create a new file or overwrite an existing file."},
    {"name": "web__fetchPage", "description": None},
]


def found(query: str) -> list[str]:
    return [str(tool["name"]) for tool in rank(query, TOOLS)]


def test_names_are_split_into_words() -> None:
    assert words("files__read_textFile2 Über-Blick") == ["files", "read", "text", "file2", "über", "blick"]


def test_the_tool_that_has_all_words_is_first() -> None:
    assert found("read file") == ["files__read_file", "files__write_file"]


def test_a_name_counts_more_than_a_description() -> None:
    tools = [{"name": "a", "description": "commit"}, {"name": "commit", "description": ""}]
    assert [tool["name"] for tool in rank("commit", tools)] == ["commit", "a"]


def test_a_beginning_is_enough_but_counts_less() -> None:
    assert found("logging") == ["git__git_log"]
    assert found("fetch") == ["web__fetchPage"]


def test_case_does_not_matter_and_the_order_of_equals_stays() -> None:
    assert found("FILES") == ["files__read_file", "files__write_file"]


def test_what_has_no_word_of_the_query_is_left_out() -> None:
    assert found("zebra") == []
    assert found("...") == []
