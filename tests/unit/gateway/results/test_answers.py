"""What an answer says of reading on, followed word for word, gives all that was asked for."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from polyplex.config.model import PayloadOptions
from polyplex.gateway.results.queries import Answer, Answers, read_query
from polyplex.store.open_store import open_store
from polyplex.store.reading.reader import PayloadReader

LONG = "é😀 word " * 300
ROWS: list[Any] = ["a", LONG, {"b": [1, 2]}, LONG, "z"]


def table() -> str:
    out = io.StringIO()
    csv.writer(out).writerows([["id", "text"], *([number, text] for number, text in enumerate(map(str, ROWS)))])
    return out.getvalue()


async def followed(folder: Path, content: str, media_type: str, arguments: dict[str, Any]) -> list[Answer]:
    """All answers, as somebody gets them who does what each says; 200 tokens at a time."""
    store = open_store(PayloadOptions(), folder)
    try:
        payload = await store.put("me", content.encode(), media_type)
        answers = Answers(PayloadReader(store), "me", payload.id, 200, 1000)
        found: list[Answer] = []
        onward: dict[str, Any] | None = arguments
        while onward is not None:
            found.append(await answers.answer(read_query(onward)))
            assert found[-1].onward != onward
            onward = found[-1].onward
        return found
    finally:
        await store.close()


@pytest.mark.parametrize("arguments", [{"page": 1}, {"page": 1, "limit": 2}, {"page": 2, "limit": 1}])
@pytest.mark.parametrize("indent", [None, 1])
async def test_a_record_that_is_cut_goes_on(tmp_path: Path, arguments: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(ROWS, ensure_ascii=False, indent=indent)
    found = await followed(tmp_path, text, "application/json", arguments)
    cut = next(place for place, answer in enumerate(found) if "cut" in answer.notice)
    rest = "".join(answer.text for answer in found[cut:])
    assert text.endswith(rest) and rest.startswith(json.dumps(LONG, ensure_ascii=False))


async def test_a_row_that_is_cut_goes_on(tmp_path: Path) -> None:
    text = table()
    found = await followed(tmp_path, text, "text/csv", {"page": 1})
    assert "cut" in found[1].notice
    assert found[0].text + "".join(answer.text for answer in found[1:]).removeprefix("id,text\r\n") == text


async def test_the_last_record_is_no_end_where_it_is_cut(tmp_path: Path) -> None:
    text = json.dumps([1, LONG], ensure_ascii=False)
    found = await followed(tmp_path, text, "application/json", {"page": 2, "limit": 1})
    assert "[1, " + "".join(answer.text for answer in found) == text


async def test_a_value_that_is_cut_goes_on(tmp_path: Path) -> None:
    text = json.dumps({"items": ROWS[1:]}, ensure_ascii=False)
    found = await followed(tmp_path, text, "application/json", {"json_path": "$.items[*]"})
    assert (
        text.endswith("".join(answer.text for answer in found)) and "the next value has the cursor 1" in found[0].notice
    )
