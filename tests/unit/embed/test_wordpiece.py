from importlib.resources import files

import pytest

from polyplex.embed.wordpiece import WordPieces, basic_words, read_vocabulary

VOCABULARY = read_vocabulary((files("polyplex.embed") / "data" / "vocabulary.txt").read_text(encoding="utf-8"))
MODEL = dict(list(VOCABULARY.items())[:30_522])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Read a file.", ["read", "a", "file", "."]),
        ("read_file(path)", ["read", "_", "file", "(", "path", ")"]),
        ("Café Ångström", ["cafe", "angstrom"]),
        ("搜索 files", ["搜", "索", "files"]),
        ("a\u00a0b\u200bc\x00d", ["a", "bcd"]),
        ("«ja»", ["«", "ja", "»"]),
        ("", []),
        ("   \t\n", []),
    ],
)
def test_words_are_cut_as_the_model_was_taught(text: str, words: list[str]) -> None:
    assert basic_words(text) == words


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("unaffable", ["una", "##ffa", "##ble"]),
        ("kubernetes", ["ku", "##ber", "##net", "##es"]),
        ("Tokyo weather", ["tokyo", "weather"]),
        ("\U0001f600", ["[UNK]"]),
        ("x" * 101, ["[UNK]"]),
    ],
)
def test_the_longest_pieces_are_taken_first(text: str, pieces: list[str]) -> None:
    names = list(MODEL)
    assert [names[number] for number in WordPieces(MODEL).encode(text)] == pieces


def test_no_more_pieces_are_read_than_asked_for() -> None:
    tokens = WordPieces(MODEL)
    assert len(tokens.encode("word " * 10_000, 64)) == 64
    assert tokens.encode("one two three", 2) == tokens.encode("one two")


def test_the_shipped_vocabulary_begins_with_the_models_own() -> None:
    assert list(MODEL)[:1] == ["[PAD]"]
    assert [MODEL[mark] for mark in ("[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [100, 101, 102, 103]
    assert len(MODEL) == 30_522
    assert "json" not in MODEL
    assert "json" in VOCABULARY
