import asyncio
import json

import pytest
from msgspec import Raw

from polyplex.downstream.session import BACKLOG, Call, Session
from polyplex.errors import RpcError
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import Era


def session() -> Session:
    return Session(Era.LEGACY, "2025-11-25", http=True)


def test_session_ids_cannot_be_guessed_and_are_visible_ascii() -> None:
    ids = {session().id for _ in range(100)}
    assert len(ids) == 100
    assert all(len(each) >= 32 and all(0x21 <= ord(mark) <= 0x7E for mark in each) for each in ids)


def test_frames_wait_for_the_stream_in_order_each_kind_once_and_bounded() -> None:
    on = session()
    for number in range(BACKLOG + 10):
        on.send(b"%d" % number)
    on.send(b"%d" % (BACKLOG + 9))
    got: list[bytes] = []
    on.attach(got.append)
    assert got == [b"%d" % number for number in range(10, BACKLOG + 10)]
    on.send(b"now")
    on.attach(None)
    on.send(b"later")
    assert got[-1] == b"now"
    on.attach(got.append)
    assert got[-1] == b"later"
    on.close()
    on.send(b"never")
    assert got[-1] == b"later"


@pytest.mark.parametrize("member", ["result", "error"])
async def test_a_question_gets_its_own_answer(member: str) -> None:
    on = session()
    asked: list[bytes] = []
    first = asyncio.create_task(on.ask("roots/list", None, asked.append))
    second = asyncio.create_task(on.ask("roots/list", b"{}", asked.append))
    await asyncio.sleep(0)
    ids = [json.loads(frame)["id"] for frame in asked]
    assert len(set(ids)) == 2
    on.answered(Message(id=Raw(b"99"), result=Raw(b"0")))
    on.answered(Message(result=Raw(b"0")))
    on.answered(Message(id=Raw(b"%d" % ids[1]), **{member: Raw(b'{"second":1}')}))  # pyright: ignore[reportArgumentType]
    assert getattr(await second, member) == b'{"second":1}'
    on.answered(Message(id=Raw(b"%d" % ids[1]), result=Raw(b"0")))
    assert not first.done()
    on.close()
    with pytest.raises(RpcError, match="the client has gone"):
        await first
    assert not on._asks


async def test_a_question_that_is_not_needed_any_more_is_taken_back() -> None:
    on = session()
    asked: list[bytes] = []
    task = asyncio.create_task(on.ask("roots/list", None, asked.append))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    identifier = json.loads(asked[0])["id"]
    assert json.loads(asked[1]) == {
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identifier},
    }  # fmt: skip
    assert not on._asks


@pytest.mark.parametrize(("sent", "params"), [(b"null", None), (b"{}", b"{}"), (b"[]", b"[]")])
def test_params_that_are_null_are_none(sent: bytes, params: bytes | None) -> None:
    message = Message(id=Raw(b"1"), method="tools/list", params=Raw(sent))
    assert Call(session(), message, lambda frame: None).params == params
