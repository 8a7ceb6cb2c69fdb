import pytest

from polyplex.downstream.session import Session
from polyplex.gateway.asks import elicitation_id
from polyplex.gateway.notices import _rank, _wants
from polyplex.protocol.envelope import LOG_LEVELS
from polyplex.protocol.revisions import Era


def test_ranks_are_those_of_syslog() -> None:
    assert [_rank(b'{"level":"%b"}' % level.encode()) for level in LOG_LEVELS] == list(range(8))


@pytest.mark.parametrize("params", [None, b"[]", b'{"level":"loud"}', b'{"level":7}', b"{}"])
def test_a_message_without_a_usable_level_is_no_failure(params: bytes | None) -> None:
    assert _rank(params) in (0, 1)


def test_a_session_wants_its_level_and_above() -> None:
    session = Session(Era.LEGACY, "2025-11-25", http=False)
    assert _wants(session, 0), "a legacy client that named no level gets what the server sends"
    session.log_level = "warning"
    assert [_wants(session, rank) for rank in range(8)] == [False] * 3 + [True] * 5
    assert not _wants(Session(Era.MODERN, "2026-07-28", http=True), 7), "a modern one asked for nothing"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (None, None),
        (b"{}", None),
        (b'{"elicitationId":"e"}', "e"),
        (b'{"elicitationId":7}', None),
        (b'{"x":"\\"elicitationId\\""}', None),
        (b'["elicitationId"]', None),
    ],
)
def test_the_id_of_an_elicitation(params: bytes | None, expected: str | None) -> None:
    assert elicitation_id(params) == expected
