"""Properties of tasks: ids that nobody can make up, and shapes that survive the way there and back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from polyplex.mux.task_ids import TaskRef, open_id, seal_id
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import Fields, encode_json
from polyplex.store.seal import KeyRing

Json = dict[str, Any]
RING = KeyRing([b"k" * 32])
NOW = "2026-01-01T00:00:00Z"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
IDS = st.uuids().map(str) | st.uuids().map(lambda each: each.hex)
REFS = st.builds(
    TaskRef, TEXT, TEXT.filter(bool) | IDS | IDS.map(str.upper) | st.text("-0123456789abcdef", min_size=32)
)
DURATIONS = st.none() | st.integers(0, 2**53 - 1)
OWN = {"taskId", "status", "ttl", "ttlMs", "pollInterval", "pollIntervalMs", "createdAt", "lastUpdatedAt", "resultType"}
LEFT_OUT = OWN | {"result", "error", "inputRequests", "requestState", "_meta"}
OTHERS = st.dictionaries(TEXT.filter(lambda key: key not in LEFT_OUT), st.none() | st.integers() | TEXT, max_size=3)
STATUS = st.sampled_from(sorted(bridge.STATUSES))


@st.composite
def core_tasks(draw: st.DrawFn) -> Json:
    """Tasks of 2025-11-25."""
    task: Json = draw(OTHERS) | {
        "taskId": draw(TEXT.filter(bool)),
        "status": draw(STATUS),
        "createdAt": draw(TEXT),
        "lastUpdatedAt": draw(TEXT),
        "ttl": draw(DURATIONS),
    }
    interval = draw(st.none() | st.integers(1, 2**53 - 1))
    return task if interval is None else task | {"pollInterval": interval}


def raw(value: Json) -> Fields:
    return {key: Raw(json.dumps(each)) for key, each in value.items()}


def plain(fields: Fields) -> Json:
    return json.loads(encode_json(fields))


@given(REFS, TEXT)
def test_an_id_leads_back_to_its_task_for_its_caller(ref: TaskRef, caller: str) -> None:
    public = seal_id(RING, ref, caller)
    assert open_id(RING, public, caller) == ref
    assert public.isascii()
    assert public.isprintable()
    assert " " not in public


@given(TEXT, TEXT.filter(bool), TEXT)
def test_a_held_task_is_no_servers(server: str, local: str, caller: str) -> None:
    held = TaskRef(server, local, own=True)
    assert open_id(RING, seal_id(RING, held, caller), caller) == held


@given(REFS, TEXT, TEXT)
def test_an_id_means_nothing_to_anybody_else(ref: TaskRef, caller: str, other: str) -> None:
    public = seal_id(RING, ref, caller)
    if caller != other:
        with pytest.raises(ValueError, match="changed, or sealed for something else"):
            open_id(RING, public, other)
    with pytest.raises(ValueError, match="not known here"):
        open_id(KeyRing([b"x" * 32]), public, caller)


@given(REFS, st.data())
def test_no_changed_id_is_taken(ref: TaskRef, data: st.DataObject) -> None:
    public = seal_id(RING, ref, "me")
    place = data.draw(st.integers(0, len(public) - 1))
    letter = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=\u00e9"))
    changed = public[:place] + letter + public[place + 1 :]
    try:
        opened = open_id(RING, changed, "me")
    except ValueError:
        return
    assert opened == ref, "spare bits at the end of the text may differ, what it says never does"


@given(TEXT)
def test_no_text_is_an_id_by_chance(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        open_id(RING, text, "me")


@given(IDS, st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_ids_of_the_usual_form_are_short(local: str, server: str) -> None:
    assert len(seal_id(RING, TaskRef(server, local), "local")) <= 84


@given(core_tasks(), TEXT.filter(bool))
def test_a_core_task_comes_back_as_it_went(task: Json, public: str) -> None:
    flat = bridge.to_flat(raw(task), public, NOW)
    assert not {"ttl", "pollInterval"} & set(flat)
    assert plain(bridge.to_core(flat, task["taskId"], NOW)) == task


@given(core_tasks(), TEXT.filter(bool), st.booleans())
def test_a_task_of_the_extension_comes_back_without_what_is_inlined(task: Json, public: str, failed: bool) -> None:
    flat = plain(bridge.to_flat(raw(task), public, NOW))
    inlined: Json = {"completed": {"result": {"isError": failed}}, "failed": {"error": {}}}.get(task["status"], {})
    core = plain(bridge.to_core(raw(flat | inlined | {"resultType": "complete"}), public, NOW))
    expected = "failed" if inlined.get("result", {}).get("isError") else task["status"]
    assert core["status"] == expected
    back = plain(bridge.to_flat(raw(core), public, NOW))
    assert back | {"status": flat["status"]} == flat


@given(core_tasks(), st.binary(max_size=3))
def test_an_outcome_decides_how_a_task_of_the_extension_ends(task: Json, _: bytes) -> None:
    flat = bridge.to_flat(raw(task), "p", NOW)
    done = plain(bridge.finished(flat, b'{"isError":true}', None))
    broken = plain(bridge.finished(flat, None, b'{"code":1,"message":"m"}'))
    if task["status"] == "cancelled":
        assert done == broken == plain(flat)
    else:
        assert (done["status"], done["result"]) == ("completed", {"isError": True})
        assert (broken["status"], broken["error"]) == ("failed", {"code": 1, "message": "m"})


@given(st.dictionaries(TEXT, st.integers(), max_size=3), TEXT)
def test_the_related_task_is_named_and_left_out_again(members: Json, public: str) -> None:
    given_params = raw({key: value for key, value in members.items() if key != "_meta"})
    named = bridge.with_related(given_params, public)
    assert bridge.related_id(encode_json(named)) == public
    assert bridge.with_related(named, None) == given_params
