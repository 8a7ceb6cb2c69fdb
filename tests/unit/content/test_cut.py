import csv
import io
import json

import pytest

from polyplex.content import kinds
from polyplex.content.cut import count_records, cut, fitting
from polyplex.content.notices import cut_notice, shown_fields
from polyplex.content.records import split
from polyplex.content.tokens import estimate, tokenizer
from tests.unit.content.texts import CHINESE, KINDS, MARKDOWN, PROSE, _rows

ROWS = _rows(400)
URI = "polyplex://payload/abc"


def test_what_fits_is_left_alone() -> None:
    made = cut(PROSE, 10_000)
    assert made.whole
    assert made.kept is PROSE
    assert cut_notice(made, URI) == ""


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_is_kept_is_in_the_budget_as_a_real_tokenizer_counts(name: str) -> None:
    text = KINDS[name]()
    text *= 20_000 // len(text) + 1
    made = cut(text, 1000)
    assert 500 < tokenizer().count(made.kept) < 1400 or name in ("rules", "Markdown")


def test_an_array_is_cut_between_its_elements() -> None:
    made = cut(json.dumps(ROWS, indent=1), 2000)
    shown = json.loads(made.kept)
    assert shown == ROWS[: len(shown)]
    assert (made.records_shown, made.records_total, made.key) == (len(shown), 400, None)
    assert json.dumps(ROWS, indent=1)[made.resume] == "{"
    assert "the first" in cut_notice(made, URI)


def test_an_array_under_a_key_stays_under_it() -> None:
    whole = {"count": 400, "items": ROWS, "next": "x"}
    made = cut(json.dumps(whole), 2000)
    shown = json.loads(made.kept)
    assert shown["items"] == ROWS[: made.records_shown]
    assert (list(shown), made.key, made.records_total) == (["count", "items"], "items", 400)


def test_of_a_json_without_records_whole_members_stay() -> None:
    whole = {f"key{number}": {"a": number, "b": "text " * 20} for number in range(100)}
    made = cut(json.dumps(whole), 700)
    shown = json.loads(made.kept)
    assert 5 < len(shown) < 100
    assert all(shown[key].items() <= whole[key].items() for key in shown)
    assert made.records_shown is None


def test_a_long_string_in_json_is_cut_within_and_not_in_an_escape() -> None:
    text = json.dumps({"id": 1, "text": 'é\n"😀' * 3000})
    for budget in range(30, 60):
        made = cut(text, budget)
        assert made.kind == "json"
        assert json.loads(text)["text"].startswith(json.loads(made.kept)["text"])
        assert json.loads(made.kept)["text"].encode()


def test_deep_and_broken_json_is_cut_as_text() -> None:
    for text in ("[" * 100_000, '{"a": tru' * 5000, '[1 2 "' * 5000):
        made = cut(text, 100, media_type=kinds.JSON)
        assert made.kept == text[: made.end] + made.closing
        assert estimate(made.kept) <= 100


def test_rows_stay_whole_and_the_header_is_not_counted() -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["id", "note"])
    writer.writerows([[row["id"], f'one\ntwo, "{row["town"]}"'] for row in ROWS])
    made = cut(written.getvalue(), 500)
    shown = list(csv.reader(io.StringIO(made.kept)))
    assert len(shown) - 1 == made.records_shown
    assert made.records_total == 400
    assert all(len(row) == 2 for row in shown)
    rest = made.kept.encode() + written.getvalue().encode()[made.resume_bytes :]
    assert len(split(rest, "csv").spans) == 400


def test_json_lines_stay_whole() -> None:
    text = "\n".join(json.dumps(row) for row in ROWS)
    made = cut(text, 900)
    assert [json.loads(line) for line in made.kept.splitlines()] == ROWS[: made.records_shown]


def test_prose_ends_with_a_sentence() -> None:
    assert cut(PROSE * 20, 300).kept.rstrip()[-1] in '."'
    assert cut(CHINESE * 20, 300).kept.rstrip()[-1] in "。,"


def test_markdown_ends_before_a_heading_and_a_fence_is_closed() -> None:
    made = cut(MARKDOWN, 400)
    assert MARKDOWN[made.end :].startswith("## ")
    code = "# T\n\n- a\n- b\n\n```python\n" + "call(1)\n" * 500 + "```\n"
    fenced = cut(code, 100)
    assert fenced.closing == "```\n"
    assert fenced.kept.endswith("call(1)\n```\n")


def test_logs_and_code_end_with_a_line() -> None:
    for name in ("log", "code"):
        made = cut(KINDS[name](), 500)
        assert made.kept.endswith("\n")
        assert made.records_shown == made.kept.count("\n")
        assert made.records_total == KINDS[name]().count("\n") + 1 - KINDS[name]().endswith("\n")


def test_the_end_of_a_text_stays_where_it_is_asked_for() -> None:
    text = "\n".join(f"line {number} of the text" for number in range(5000))
    made = cut(text, 300, tail=True)
    assert made.tail.endswith("line 4999 of the text")
    assert made.tail_start is not None
    assert text[made.tail_start - 1] == "\n"
    assert "left out here" in cut_notice(made, URI)
    assert cut(json.dumps(ROWS), 300, tail=True).tail == ""


def test_the_notice_says_where_to_read_on() -> None:
    made = cut("wörter " * 5000, 200)
    notice = cut_notice(made, URI)
    assert f'{{"uri":"{URI}","offset":{made.resume_bytes}}}' in notice
    assert f"characters 0 to {made.end:,} of 35,000 shown" in notice
    assert "was not kept" in cut_notice(made, None)
    assert shown_fields(made, URI)["bytes"] == {"shown": made.end_bytes, "total": 40_000, "next": made.resume_bytes}


@pytest.mark.parametrize("budget", [-5, 0, 1, 2])
def test_a_budget_for_nothing_shows_nothing_or_little(budget: int) -> None:
    made = cut(json.dumps(ROWS), budget)
    assert estimate(made.kept) <= max(budget, 0)
    assert made.resume <= made.total


def test_as_much_as_fits_is_found() -> None:
    for name in ("prose", "base64", "Chinese", "CSV"):
        text = KINDS[name]() * 30
        assert 850 <= estimate(text[: fitting(text, 1000)]) <= 1000
    assert fitting("", 10) == 0
    assert fitting("word", 100) == 4


def test_records_of_very_long_texts_are_not_counted() -> None:
    assert count_records("a,b\n" * 3_000_000, "csv") is None
    assert count_records("a\nb", "lines") == 2
    assert count_records("a", "text") is None
