import gzip
import io
import json
import wave
import zipfile

import pytest

from polyplex.content import kinds
from polyplex.content.kinds import media_type, sniff
from tests.unit.content.texts import KINDS

FOUND = {
    "prose": kinds.PLAIN,
    "code": kinds.CODE,
    "more code": kinds.CODE,
    "compact JSON": kinds.JSON,
    "JSON": kinds.JSON,
    "indented JSON": kinds.JSON,
    "Chinese JSON": kinds.JSON,
    "CSV": kinds.CSV,
    "log": kinds.LOG,
    "HTML": kinds.HTML,
    "Markdown": kinds.MARKDOWN,
    "base64": kinds.PLAIN,
    "digits": kinds.PLAIN,
    "Chinese": kinds.PLAIN,
    "emoji": kinds.PLAIN,
}
TEXTS = [
    ("", kinds.PLAIN),
    ("true", kinds.PLAIN),
    ("{}", kinds.JSON),
    ("\ufeff [1, 2", kinds.JSON),
    ('{"a": "' + "x" * 20_000, kinds.JSON),
    ('{"a":1}\n{"a":2}\n', kinds.JSON_LINES),
    ("[1]\n[2]\n", kinds.JSON_LINES),
    ("{not json}", kinds.PLAIN),
    ("[1] a foot note\n[2] another", kinds.PLAIN),
    ("[INFO] started\n[WARN] late\n", kinds.LOG),
    ("a\tb\n1\t2\n", kinds.TSV),
    ("a;b\n1;2\n3;4\n", kinds.CSV),
    ('id,note\n1,"a, b"\n2,c\n', kinds.CSV),
    ("Dear reader, good day\nyes, I am late, sorry\n", kinds.PLAIN),
    ("| a | b |\n|---|---|\n| 1 | 2 |\n\n# T\n\n- x\n", kinds.MARKDOWN),
    ("<!DOCTYPE html><p>x", kinds.HTML),
    ('<?xml version="1.0"?><a/>', kinds.XML),
    ("<rss version='2'><channel/></rss>", kinds.XML),
    ('<svg width="1" height="2"/>', kinds.SVG),
    ("<3 you", kinds.PLAIN),
]


@pytest.mark.parametrize("name", sorted(FOUND))
def test_kinds_of_text_are_told_apart(name: str) -> None:
    text = KINDS[name]()
    assert sniff(text) == sniff(text.encode()) == FOUND[name]


@pytest.mark.parametrize(("text", "kind"), TEXTS)
def test_short_texts_are_told_apart(text: str, kind: str) -> None:
    assert sniff(text) == sniff(text.encode(), "text/plain; charset=utf-8") == kind


def archive() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        opened.writestr("a.txt", "x")
    return made.getvalue()


def sound() -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as opened:
        opened.setparams((1, 2, 8000, 0, "NONE", ""))
        opened.writeframes(bytes(800))
    return made.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (archive(), "application/zip"),
        (sound(), "audio/wav"),
        (gzip.compress(b"x", mtime=0), "application/gzip"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"\0\1\2\3" * 9, kinds.BINARY),
        (b"\xff\xfe" + "text".encode("utf-16-le"), kinds.BINARY),
    ],
)
def test_bytes_are_told_by_their_marks(data: bytes, kind: str) -> None:
    assert sniff(data) == sniff(data, kinds.BINARY) == sniff(data, "text/plain") == kind


def test_a_declaration_that_says_something_counts() -> None:
    assert sniff("a,b", "Application/JSON; charset=utf-8") == kinds.JSON
    assert sniff("x", "text/x-python") == "text/x-python"
    assert sniff(archive(), "application/vnd.oasis.opendocument.text") == "application/vnd.oasis.opendocument.text"
    assert sniff(b"\x89PNG\r\n\x1a\n", "image/jpeg") == "image/png"
    assert sniff("x", "not a type") == kinds.PLAIN


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("application/x-ndjson", kinds.JSON_LINES),
        ("TEXT/CSV;header=present", kinds.CSV),
        (None, ""),
        ("a b/c", ""),
        ("x" * 900, ""),
    ],
)
def test_declared_types_get_their_usual_spelling(declared: str | None, kind: str) -> None:
    assert media_type(declared) == kind


def test_a_character_that_the_sample_cuts_does_not_make_it_binary() -> None:
    data = ("é" * kinds.SAMPLE).encode()
    assert sniff(b"x" + data) == sniff(data) == kinds.PLAIN


def test_text_types_are_known() -> None:
    texts = [kinds.JSON, "application/problem+json", "text/anything", kinds.SVG, "application/yaml"]
    assert all(kinds.is_text(kind) for kind in texts)
    assert not any(kinds.is_text(kind) for kind in ["image/png", kinds.BINARY, "application/pdf"])


def test_a_table_in_json_is_no_table() -> None:
    assert sniff(json.dumps({"text": "a,b\n1,2"})) == kinds.JSON
