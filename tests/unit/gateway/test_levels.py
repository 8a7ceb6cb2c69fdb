import pytest
from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.gateway.levels import call_wants, rank_of, session_wants
from polyplex.protocol.envelope import LOG_LEVELS
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import LATEST_MODERN, Era


def test_ranks_are_those_of_syslog() -> None:
    assert [rank_of(b'{"level":"%b"}' % level.encode()) for level in LOG_LEVELS] == list(range(8))


@pytest.mark.parametrize("params", [None, b"[]", b'{"level":"loud"}', b'{"level":7}', b"{}"])
def test_a_message_without_a_usable_level_is_no_failure(params: bytes | None) -> None:
    assert rank_of(params) in (0, 1)


def test_a_session_wants_its_level_and_above() -> None:
    session = Session(Era.LEGACY, "2025-11-25", http=False)
    assert session_wants(session, 0), "a legacy client that named no level gets what the server sends"
    session.log_level = "warning"
    assert [session_wants(session, rank) for rank in range(8)] == [False] * 3 + [True] * 5


def test_a_modern_call_wants_what_it_names() -> None:
    message = Message(id=Raw(b"1"), method="tools/call")
    call = Call(Session(Era.MODERN, LATEST_MODERN, http=True), message, lambda frame: None)
    assert not call_wants(call, 7), "it asked for nothing"
    call.log_level = "error"
    assert [call_wants(call, rank) for rank in range(8)] == [False] * 4 + [True] * 4
    legacy = Call(Session(Era.LEGACY, "2025-11-25", http=True), message, lambda frame: None)
    assert call_wants(legacy, 0)
