import json
from typing import Any

import pytest
from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import Fields
from polyplex.protocol.revisions import Era

NOW = "2026-01-01T00:00:00Z"
CALLS: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}
EXTENDED: dict[str, Any] = {"extensions": {bridge.EXTENSION: {}}}


def raw(value: dict[str, Any]) -> Fields:
    return {key: Raw(json.dumps(each)) for key, each in value.items()}


@pytest.mark.parametrize(
    ("era", "revision", "capabilities", "expected"),
    [
        (Era.LEGACY, "2025-11-25", CALLS, True),
        (Era.LEGACY, "2025-06-18", CALLS, False),
        (Era.LEGACY, "2025-11-25", {"tasks": {"list": {}}}, False),
        (Era.LEGACY, "2025-11-25", {"tasks": True}, False),
        (Era.LEGACY, "2025-11-25", EXTENDED, False),
        (Era.MODERN, "2026-07-28", EXTENDED, True),
        (Era.MODERN, "2026-07-28", CALLS, False),
        (Era.MODERN, "2026-07-28", {"extensions": []}, False),
    ],
)
def test_who_makes_tasks(era: Era, revision: str, capabilities: dict[str, Any], expected: bool) -> None:
    assert bridge.offers_tasks(era, revision, raw(capabilities)) is expected


def test_which_requests_a_client_runs_as_tasks() -> None:
    capabilities = raw({"tasks": {"requests": {"sampling": {"createMessage": {}}}}})
    assert bridge.takes_tasks(capabilities, "sampling/createMessage")
    assert not bridge.takes_tasks(capabilities, "elicitation/create")
    assert not bridge.takes_tasks({}, "sampling/createMessage")


def test_a_request_without_the_extension_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(RpcError) as refused:
        bridge.require_extension(raw({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {}}}}))
    assert refused.value.code == -32021
    assert json.loads(refused.value.data or b"") == {"requiredCapabilities": EXTENDED}
    error = json.dumps({"code": -32021, "message": "", "data": {"requiredCapabilities": EXTENDED}}).encode()
    assert bridge.needs_extension(error)
    for other in (b'{"code":-32021,"message":""}', b'{"code":-32021,"message":"","data":[]}', b'{"code":-32603}'):
        assert not bridge.needs_extension(other)


def test_the_extension_is_added_to_what_is_declared() -> None:
    declared = json.loads(bridge.with_extension(b'{"sampling":{},"extensions":{"x":{"y":1}}}'))
    assert declared == {"sampling": {}, "extensions": {"x": {"y": 1}, bridge.EXTENSION: {}}}
    kept = b'{"extensions":{"io.modelcontextprotocol/tasks":{"z":1}}}'
    assert json.loads(bridge.with_extension(kept)) == json.loads(kept)


@pytest.mark.parametrize(
    ("result", "era"),
    [
        (b'{"content":[]}', Era.MODERN),
        (b'{"content":[],"x":"task"}', Era.MODERN),
        (b'{"resultType":"complete","task":{"taskId":"t","status":"working"}}', Era.MODERN),
        (b'{"resultType":"task","taskId":"t","status":"working"}', Era.LEGACY),
        (b'{"content":[],"task":1}', Era.LEGACY),
    ],
)
def test_what_is_no_new_task(result: bytes, era: Era) -> None:
    assert bridge.created(result, era) is None


@pytest.mark.parametrize(
    "task", [{"taskId": "t"}, {"taskId": "", "status": "working"}, {"taskId": 5, "status": "working"},
             {"taskId": "t", "status": "sleeping"}, {"status": "working"}, {"taskId": "x" * 5000, "status": "working"}],
)  # fmt: skip
def test_a_task_that_cannot_be_used(task: dict[str, Any]) -> None:
    for result, era in ((task | {"resultType": "task"}, Era.MODERN), ({"task": task}, Era.LEGACY)):
        with pytest.raises(RemoteProtocolError):
            bridge.created(json.dumps(result).encode(), era)


def test_what_a_server_left_out_is_filled_in() -> None:
    flat = bridge.to_flat(raw({"taskId": "t", "status": "working"}), "p", NOW)
    assert flat == raw({"taskId": "p", "status": "working", "createdAt": NOW, "lastUpdatedAt": NOW, "ttlMs": None})


@pytest.mark.parametrize(
    ("given", "expected"),
    [("1.5", "2"), ("null", "null"), ("-1", "null"), ('"x"', "null"), ("1e30", "null"), ("0", "0"), ("1e3", "1000")],
)
def test_durations_of_the_extension_are_whole_or_unlimited(given: str, expected: str) -> None:
    flat = bridge.to_flat({"status": Raw(b'"working"'), "ttl": Raw(given.encode())}, "p", NOW)
    assert bytes(flat["ttlMs"]).decode() == expected


TOOL: dict[str, Any] = {"name": "t", "execution": {"taskSupport": "required", "x": 1}}


@pytest.mark.parametrize(
    ("era", "support", "able", "tasks", "expected"),
    [
        (Era.LEGACY, "required", True, True, {"taskSupport": "optional", "x": 1}),
        (Era.LEGACY, "required", False, True, {"x": 1}),
        (Era.LEGACY, "required", True, False, None),
        (Era.MODERN, "", True, True, {"taskSupport": "optional", "x": 1}),
        (Era.MODERN, "", True, False, TOOL["execution"]),
    ],
)
def test_how_a_tool_is_shown(era: Era, support: str, able: bool, tasks: bool, expected: Any) -> None:
    shown = json.loads(bridge.shown_tool(json.dumps(TOOL).encode(), support, era, able=able, tasks=tasks))
    assert shown.get("execution") == expected


def test_a_tool_without_a_word_on_tasks_keeps_its_bytes() -> None:
    text = b'{ "name" : "t" }'
    for era in Era:
        assert bridge.shown_tool(text, "", era, able=False, tasks=True) is text
    assert json.loads(bridge.shown_tool(text, "", Era.MODERN, able=True, tasks=True))["execution"] == {
        "taskSupport": "optional"
    }
