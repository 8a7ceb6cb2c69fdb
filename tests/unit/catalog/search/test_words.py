import pytest

from polyplex.catalog.search.words import MAX_WORD, split, stem, terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("readFile", ["read", "file"]),
        ("read_file", ["read", "file"]),
        ("READ-FILE", ["read", "file"]),
        ("parseHTTPResponse2", ["parse", "http", "response2"]),
        ("files__read.file/v2", ["files", "read", "file", "v2"]),
        ("Ｆｕｌｌ＿Ｗｉｄｔｈ", ["full", "width"]),
        ("Größe café", ["grosse", "cafe"]),
        ("必应搜索", ["必应", "应搜", "搜索"]),
        ("get天气forecast", ["get", "天气", "forecast"]),
        ("東", ["東"]),
        ("поиск файлов", ["поиск", "файлов"]),
        ("", []),
        ("__--!?", []),
    ],
)
def test_names_and_texts_are_split_into_words(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize(
    "words",
    [
        ("create", "creates", "created", "creating", "creation", "creator"),
        ("file", "files"),
        ("query", "queries"),
        ("search", "searches", "searching", "searched"),
        ("convert", "converter", "converting"),
        ("summarize", "summarise", "summarization"),
        ("run", "running"),
        ("box", "boxes"),
        ("translate", "translation", "translator"),
    ],
)
def test_forms_of_one_word_have_one_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("string", "stre"),
        ("format", "form"),
        ("news", "new"),
        ("image", "imagine"),
        ("status", "state"),
        ("bed", "b"),
        ("pass", "pas"),
    ],
)
def test_unlike_words_stay_apart(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_stop_words_and_single_letters_are_left_out() -> None:
    assert terms("I would like to list all of the files in a folder x 7") == [stem("list"), stem("files"), "fold", "7"]


def test_endless_words_are_cut() -> None:
    assert split("x" * 10_000) == ["x" * MAX_WORD]
    assert len(split("word " * 1_000_000)) < 5_000
