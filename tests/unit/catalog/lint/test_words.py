import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.lint.words import (
    PREAMBLE,
    deed,
    foreign,
    leading_verb,
    listed,
    name_verb,
    phrase,
    sentences,
    verb_of,
)


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("deletes", "delete"),
        ("Created", "create"),
        ("copies", "copy"),
        ("analyzing", "analyze"),
        ("watches", "watches"),
        ("address", "address"),
        ("news", "news"),
    ],
)
def test_forms_of_a_verb_are_the_verb(word: str, verb: str) -> None:
    assert verb_of(word) == verb


def test_the_verb_of_a_name_stands_first_or_behind_its_server() -> None:
    assert name_verb("delete_file") == "delete"
    assert name_verb("git_status", "git") == ""
    assert name_verb("githubCreateIssue", "github") == "create"
    assert name_verb("file_delete") == ""


def test_a_noun_is_a_verb_only_where_the_text_says_so() -> None:
    assert deed("order_status", "shop", "Shows the status of an order") == ""
    assert deed("order_food", "shop", "Order food") == "order"
    assert deed("delete_file", "fs", "Whatever") == "delete"


def test_the_leading_verb_is_an_imperative_or_a_third_person() -> None:
    assert leading_verb("Deletes all") == "delete"
    assert leading_verb("Deleted items") == ""
    assert leading_verb("") == ""


def test_sentences_end_where_sentences_end() -> None:
    text = "Reads a file, e.g. a text. Fails else!\n\nSecond one\nover lines. 第一句。第二句"
    assert sentences(text) == [
        "Reads a file, e.g. a text.",
        "Fails else!",
        "Second one over lines.",
        "第一句",
        "第二句",
    ]


def test_names_become_phrases_and_abbreviations_stay() -> None:
    assert phrase("getStationCode") == "get station code"
    assert phrase("parse_HTTP_url-now") == "parse HTTP url now"
    assert listed(["a", "b", "c"], "or") == "a, b or c"
    assert listed([]) == ""


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("This tool allows you to search files", "search files"),
        ("A powerful tool for searching", "searching"),
        ("Allows users to search", "search"),
        ("The tool chain is built", "The tool chain is built"),
        ("This function returns", "This function returns"),
    ],
)
def test_preambles_are_recognised(text: str, rest: str) -> None:
    assert PREAMBLE.sub("", text) == rest


def test_another_script_is_told_from_some_foreign_words() -> None:
    assert foreign("获取澎湃新闻热榜")
    assert not foreign("Reads the file 新闻 and returns all that is in it")
    assert not foreign("")


@given(st.text(max_size=300))
def test_any_text_has_its_words_in_its_sentences(text: str) -> None:
    found = "".join(sentences(text)).replace(" ", "")
    assert found == "".join(text.replace("\u3002", " ").split())


@given(st.text(alphabet=" thisatoolforfunctionTH", max_size=400))
def test_a_preamble_is_found_in_linear_time(text: str) -> None:
    PREAMBLE.sub("", text)
