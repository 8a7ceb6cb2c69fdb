import asyncio
from typing import Any

import pytest

from polyplex.errors import RpcError, UpstreamLost, UpstreamTimeout, UpstreamUnavailable
from polyplex.protocol import jsonrpc
from polyplex.protocol.revisions import Era
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams import connection as module
from polyplex.upstreams.connection import Peer, request_id
from tests.unit.upstreams.wire import Wire, within


def begin(wire: Wire, method: str = "tools/call", **options: Any) -> Exchange:
    return wire.connection.start(method, b"{}", timeout=options.pop("timeout", 0), **options)


def number(exchange: Exchange) -> int:
    return int(exchange.id)


async def test_ids_are_never_used_twice() -> None:
    wires = [Wire(), Wire()]
    ids = [begin(wire).id for wire in wires for _ in range(100)] + [request_id() for _ in range(100)]
    assert len(set(ids)) == 300


async def test_answers_find_their_requests_in_any_order() -> None:
    wire = Wire()
    exchanges = [begin(wire) for _ in range(3)]
    for exchange in reversed(exchanges):
        wire.say(id=number(exchange), result={"of": number(exchange)})
    for exchange in exchanges:
        assert (await within(exchange)).result == b'{"of": %b}' % exchange.id
    assert wire.connection.in_flight == {}


async def test_an_id_that_comes_back_as_text_is_still_ours() -> None:
    wire = Wire()
    exchange = begin(wire)
    wire.say(id=str(number(exchange)), result={})
    assert (await within(exchange)).result == b"{}"


async def test_an_id_that_comes_back_with_a_fraction_of_zero_is_still_ours() -> None:
    wire = Wire()
    exchange = begin(wire)
    wire.raw(b'{"jsonrpc":"2.0","id":%b.0,"result":{}}' % exchange.id)
    assert (await within(exchange)).result == b"{}"


@pytest.mark.parametrize("result", [None, [1], "text", 5, True])
async def test_a_result_that_is_no_object_fails_its_call_and_names_the_server(result: object) -> None:
    wire = Wire()
    exchange, other = begin(wire), begin(wire)
    wire.say(id=number(exchange), result=result)
    with pytest.raises(UpstreamLost, match="its result for tools/call is no object") as caught:
        await within(exchange)
    assert caught.value.server == wire.connection.server
    assert not other.done()


async def test_null_stands_for_a_result_that_says_nothing() -> None:
    wire = Wire()
    exchange = begin(wire, "resources/subscribe")
    wire.say(id=number(exchange), result=None)
    assert (await within(exchange)).result == b"{}"


async def test_an_error_that_breaks_the_rules_is_mended() -> None:
    wire = Wire()
    exchange = begin(wire)
    wire.say(id=number(exchange), error="boom")
    error = jsonrpc.decode_error((await within(exchange)).error or b"")
    assert (error.code, error.message) == (-32603, "boom")


@pytest.mark.parametrize("method", [b"null", b'""'])
async def test_an_answer_with_an_empty_method_fails_at_once(method: bytes) -> None:
    wire = Wire()
    exchange = begin(wire)
    wire.raw(b'{"jsonrpc":"2.0","id":%b,"method":%b,"result":{}}' % (exchange.id, method))
    with pytest.raises(UpstreamLost, match="cannot be read"):
        await within(exchange)


async def test_a_list_with_a_deep_entry_keeps_the_others() -> None:
    wire = Wire()
    lists, call = begin(wire, "tools/list"), begin(wire)
    deep = b"[" * 5000 + b"]" * 5000
    for exchange in (lists, call):
        wire.raw(b'{"jsonrpc":"2.0","id":%b,"result":{"tools":[{"name":"t"},%b]}}' % (exchange.id, deep))
    assert ((await within(lists)).result or b"").startswith(b'{"tools":[{"name":"t"},[[')
    with pytest.raises(UpstreamLost, match="nested too deeply"):
        await within(call)


async def test_only_the_first_answer_counts_and_answers_to_nothing_are_dropped() -> None:
    wire = Wire()
    exchange = begin(wire)
    wire.say(id=number(exchange), error={"code": 1, "message": "first"})
    wire.say(id=number(exchange), result={"late": True})
    wire.say(id=999_999_999, result={})
    wire.say(id=None, error={"code": 1, "message": "?"})
    reply = await within(exchange)
    assert reply.result is None
    assert reply.error is not None and b"first" in reply.error


async def test_an_error_without_id_belongs_to_the_stream_it_came_on() -> None:
    wire = Wire()
    exchange, other = begin(wire), begin(wire)
    wire.say(exchange, id=None, error={"code": -32700, "message": "bad"})
    assert (await within(exchange)).error
    assert not other.done()


@pytest.mark.parametrize(
    "frame", [b"hello", b"{", b"[]", b"[1]", b"\xff\xfe", b"{}", b'{"jsonrpc":"2.0"}', b"null", b""]
)
async def test_what_is_no_message_changes_nothing(frame: bytes) -> None:
    wire = Wire()
    exchange = begin(wire)
    wire.raw(frame)
    wire.say(id=number(exchange), result={})
    assert (await within(exchange)).result == b"{}"
    assert wire.losses == []


async def test_noise_is_logged_at_first_and_then_ever_less(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "polyplex.upstreams")
    wire = Wire()
    for _ in range(module.SKIPS_LOGGED * 64):
        wire.raw(b"noise")
    assert module.SKIPS_LOGGED <= len(caplog.records) <= module.SKIPS_LOGGED + 7


async def test_an_answer_that_cannot_be_read_fails_its_own_call_only() -> None:
    wire = Wire()
    exchange, other = begin(wire), begin(wire)
    wire.raw(b'{"jsonrpc":"2.0","id":%b,"result":{"x":+}}' % exchange.id)
    with pytest.raises(UpstreamLost, match="cannot be read"):
        await within(exchange)
    assert not other.done()


@pytest.mark.parametrize("own_stream", [False, True])
async def test_a_batch_is_taken_apart(own_stream: bool) -> None:
    wire = Wire()
    one, two = begin(wire), begin(wire)
    hint = one if own_stream else None
    wire.raw(
        b'[{"jsonrpc":"2.0","id":%b,"result":{}},{"jsonrpc":"2.0","method":"notifications/x"},'
        b'{"jsonrpc":"2.0","id":%b,"result":{}}]' % (one.id, two.id),
        hint,
    )
    assert one.done() and two.done()
    assert wire.notices == [(hint and hint.id, "notifications/x", None)]


@pytest.mark.parametrize("closing", [False, True])
async def test_cancelling_tells_the_server_in_the_way_of_its_transport(closing: bool) -> None:
    wire = Wire(cancels_by_closing=closing)
    exchange = begin(wire)
    wire.connection.cancel(exchange, "no need")
    told = [message["params"] for message in wire.sent if message["method"] == "notifications/cancelled"]
    assert told == ([] if closing else [{"requestId": number(exchange), "reason": "no need"}])
    assert wire.abandoned == [exchange.id]
    wire.connection.cancel(exchange, "again")
    wire.say(id=number(exchange), result={})
    assert len(wire.abandoned) == 1
    with pytest.raises(asyncio.CancelledError):
        await within(exchange)


async def test_initialize_is_never_cancelled_by_a_notice() -> None:
    wire = Wire()
    wire.connection.cancel(begin(wire, "initialize"), "x")
    assert [message["method"] for message in wire.sent] == ["initialize"]


async def test_the_end_fails_everything_and_later_requests_are_never_sent() -> None:
    wire = Wire()
    exchanges = [begin(wire) for _ in range(3)]
    wire.connection.closed("exited with code 3")
    for exchange in exchanges:
        with pytest.raises(UpstreamLost, match="exited with code 3"):
            await within(exchange)
    sent = len(wire.sent)
    with pytest.raises(UpstreamUnavailable):
        await within(begin(wire))
    wire.connection.notify("notifications/x")
    wire.connection.closed("again")
    assert (len(wire.sent), wire.losses) == (sent, ["exited with code 3"])


async def test_our_own_close_is_not_a_loss() -> None:
    wire = Wire()
    exchange = begin(wire)
    await wire.connection.close()
    wire.connection.closed("the process ended")
    assert (wire.losses, wire.closes) == ([], 1)
    with pytest.raises(UpstreamLost):
        await within(exchange)


def connected(wire: Wire) -> None:
    wire.connection.peer = Peer(Era.LEGACY, "2025-11-25", {}, b"{}", None)


async def test_a_lost_session_is_reported_before_the_call_that_noticed_goes_on() -> None:
    wire = Wire()
    connected(wire)
    exchange, other = begin(wire), begin(wire)
    seen: list[bool] = []
    exchange.on_done = lambda done: seen.append(wire.connection.open)
    wire.connection.session_lost(exchange)
    assert seen == [False]
    with pytest.raises(UpstreamUnavailable):
        exchange.result()
    assert not other.done(), "whether it ran is not known yet"
    assert wire.losses == ["the server no longer knows the session"]


async def test_a_request_that_could_not_be_sent_ends_the_session_first() -> None:
    wire = Wire()
    connected(wire)
    exchange, other = begin(wire), begin(wire)
    seen: list[bool] = []
    exchange.on_done = lambda done: seen.append(wire.connection.open)
    wire.connection.failed(exchange, UpstreamUnavailable("s", "refused"))
    assert (seen, wire.losses) == ([False], ["refused"])
    with pytest.raises(UpstreamLost):
        other.result()


async def test_a_failure_of_one_request_leaves_the_session() -> None:
    wire = Wire()
    connected(wire)
    exchange, other = begin(wire), begin(wire)
    wire.connection.failed(exchange, UpstreamLost("s", "the stream broke"))
    assert wire.connection.open and not other.done() and wire.losses == []
    with pytest.raises(UpstreamLost):
        exchange.result()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
async def test_a_request_times_out_by_itself_and_is_cancelled() -> None:
    wire = Wire()
    patient = begin(wire)
    exchange = begin(wire, timeout=0.05, last=9)
    with pytest.raises(UpstreamTimeout, match="within 0.05 s"):
        await within(exchange)
    assert (await wire.sends("notifications/cancelled"))["params"]["requestId"] == number(exchange)
    assert not patient.done()


@pytest.mark.usefixtures("quick")
async def test_progress_grants_time_up_to_the_last_deadline() -> None:
    wire = Wire()
    exchange = begin(wire, timeout=5, last=50, token=b'"t"')
    granted = exchange.deadline
    exchange.deadline -= 3
    wire.say(method="notifications/progress", params={"progressToken": number(exchange), "progress": 1})
    assert exchange.deadline >= granted
    exchange.last_deadline = granted
    wire.say(method="notifications/progress", params={"progressToken": str(number(exchange)), "progress": 2})
    assert exchange.deadline == granted
    assert [notice[:2] for notice in wire.notices] == [(exchange.id, "notifications/progress")] * 2


async def test_progress_for_nobody_is_dropped() -> None:
    wire = Wire()
    exchange = begin(wire)
    for params in ({}, {"progressToken": None}, {"progressToken": "x"}, {"progressToken": number(exchange)}):
        wire.say(method="notifications/progress", params=params)
    wire.raw(b'{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}')
    assert wire.notices == [], "a call that asked for no progress gets none"


async def test_notices_belong_to_their_stream_or_subscription() -> None:
    wire = Wire()
    exchange, listen = begin(wire), begin(wire, "subscriptions/listen")
    wire.say(exchange, method="notifications/message", params={"level": "info"})
    meta = {"io.modelcontextprotocol/subscriptionId": number(listen)}
    wire.say(method="notifications/x", params={"_meta": meta})
    wire.say(method="notifications/y", params={"note": "io.modelcontextprotocol/subscriptionId"})
    assert [notice[0] for notice in wire.notices] == [exchange.id, listen.id, None]


async def test_only_a_stream_of_notices_can_be_ended_by_the_server() -> None:
    wire = Wire()
    call, listen = begin(wire), begin(wire, "subscriptions/listen")
    for exchange in (call, listen):
        wire.say(method="notifications/cancelled", params={"requestId": number(exchange)})
    assert not call.done()
    with pytest.raises(UpstreamLost):
        listen.result()


async def test_a_ping_is_answered_and_foreign_requests_are_refused() -> None:
    wire = Wire()
    wire.say(id="p", method="ping")
    wire.say(id=0, method="tools/list")
    assert wire.responses()[0] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert (wire.responses()[1]["id"], wire.responses()[1]["error"]["code"]) == (0, -32601)


async def test_a_question_is_answered_once_with_its_own_id() -> None:
    wire = Wire()
    exchange = begin(wire, timeout=5, last=500)
    wire.answer = asyncio.get_running_loop().create_future()
    wire.say(exchange, id="q", method="roots/list")
    wire.say(id="q", method="roots/list")
    assert wire.responses()[0]["error"]["code"] == -32600, "the same id again while it is open"
    assert wire.asked == [(exchange.id, "roots/list")]
    await asyncio.sleep(0)
    assert exchange.deadline == 0.0, "a human may be reading, so no time counts"
    wire.answer.set_result(Reply(result=b'{"roots":[]}'))
    async with asyncio.timeout(5):
        while len(wire.responses()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert wire.responses()[1] == {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}
    assert 0.0 < exchange.deadline < exchange.last_deadline


async def test_a_question_that_nobody_can_answer_is_refused_at_once() -> None:
    wire = Wire()
    wire.answer = RpcError(-32600, "two clients", b'{"k":1}')
    wire.say(id=1, method="roots/list")
    assert wire.responses() == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "two clients", "data": {"k": 1}}}
    ]


async def test_too_many_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ASKS", 2)
    wire = Wire()
    wire.answer = asyncio.get_running_loop().create_future()
    for identifier in range(3):
        wire.say(id=identifier, method="roots/list")
    assert [response["id"] for response in wire.responses()] == [2]
    await wire.connection.close()


async def test_a_request_of_our_own_gives_members_or_raises() -> None:
    wire = Wire()

    async def ask(**answer: Any) -> dict[str, Any]:
        task = asyncio.get_running_loop().create_task(wire.connection.request("tools/list", b"{}", seconds=5))
        count = len(wire.sent) + 1
        message = await wire.sends("tools/list", count)
        wire.say(id=message["id"], **answer)
        return await within(task)

    assert {key: bytes(raw) for key, raw in (await ask(result={"tools": []})).items()} == {"tools": b"[]"}
    with pytest.raises(RpcError, match="no") as caught:
        await ask(error={"code": 7, "message": "no", "data": [1]})
    assert (caught.value.code, caught.value.data) == (7, b"[1]")
    with pytest.raises(UpstreamLost, match="no object"):
        await ask(result=[1])


async def test_a_request_of_our_own_is_cancelled_with_its_task() -> None:
    wire = Wire()
    task = asyncio.get_running_loop().create_task(wire.connection.request("tools/list", None, seconds=5))
    message = await wire.sends("tools/list")
    task.cancel()
    assert (await wire.sends("notifications/cancelled"))["params"]["requestId"] == message["id"]
    await asyncio.wait([task])
    assert wire.connection.in_flight == {}
