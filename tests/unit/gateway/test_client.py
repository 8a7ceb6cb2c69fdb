import json

import pytest

from polyplex.downstream.session import Session
from polyplex.gateway.client import call_of, canonical_capabilities, info, legacy_client
from polyplex.gateway.profile import Profile
from polyplex.protocol.revisions import Era
from polyplex.upstreams.pool import NO_CAPABILITIES


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (b'{"sampling":{},"roots":{"listChanged":true}}', b'{ "roots" : {"listChanged": true}, "sampling": {} }'),
        (b'{"elicitation":{"form":{},"url":{}}}', b'{"elicitation":{"url":{},"form":{}}}'),
        (b"{}", b'{"vendor":{"x":1}}'),
    ],
)
def test_equal_sets_of_abilities_have_one_spelling(one: bytes, same: bytes) -> None:
    assert canonical_capabilities(one)[0] == canonical_capabilities(same)[0]


def test_what_differs_stays_different() -> None:
    spellings = [
        b"{}",
        b'{"roots":{}}',
        b'{"roots":{"listChanged":true}}',
        b'{"sampling":{}}',
        b'{"sampling":{"tools":{}}}',
    ]
    assert len({canonical_capabilities(each)[0] for each in spellings}) == len(spellings)
    assert canonical_capabilities(b"{}")[0] == NO_CAPABILITIES


async def test_a_client_can_what_it_declared() -> None:
    session = Session(Era.LEGACY, "2025-11-25", http=False)
    session.capabilities = b'{"sampling":{}}'
    client = legacy_client(session, Profile())
    assert (client.can("sampling"), client.can("roots")) == (True, False)
    assert client.binding.session == session.id
    assert client.facts.log_level is None
    session.log_level = "error"
    client.level_changed()
    assert client.facts.log_level == "error"


def test_only_calls_are_calls() -> None:
    assert call_of(None) is None
    assert call_of("x") is None
    assert json.loads(info("n", "t", "1")) == {"name": "n", "title": "t", "version": "1"}
