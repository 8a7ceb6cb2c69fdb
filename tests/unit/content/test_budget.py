import base64
import json

import pytest

from polyplex.content.budget import Share, Weight, share, weigh
from polyplex.content.notices import NOTICE_TOKENS
from tests.unit.content.test_images import png

TEXT, SOLID = True, False


def weights(*tokens: int) -> list[Weight]:
    return [Weight(count, TEXT) for count in tokens]


def test_what_fits_stays_whole() -> None:
    plan = share(weights(100, 200), 300)
    assert plan.whole
    assert [one.action for one in plan.shares] == ["keep", "keep"]


def test_the_largest_gives_first_and_small_ones_stay_whole() -> None:
    plan = share(weights(100, 5000, 200, 700), 2000)
    assert [one.action for one in plan.shares] == ["keep", "cut", "keep", "keep"]
    assert plan.shares[1] == Share("cut", 1000)
    assert plan.tokens == 2000


def test_several_large_ones_give_alike() -> None:
    plan = share(weights(5000, 100, 9000), 2100)
    assert [one.max_tokens for one in plan.shares] == [1000, 100, 1000]


def test_what_cannot_be_cut_is_moved_out_whole() -> None:
    plan = share([Weight(1600, SOLID), Weight(300, TEXT), Weight(1600, SOLID)], 2100)
    assert [one.action for one in plan.shares] in (["keep", "keep", "move"], ["move", "keep", "keep"])


def test_a_small_solid_one_is_not_exchanged_for_a_notice() -> None:
    plan = share([Weight(NOTICE_TOKENS - 1, SOLID), Weight(9000, TEXT)], 1000)
    assert [one.action for one in plan.shares] == ["keep", "cut"]


def test_of_too_many_blocks_the_first_stay_and_the_rest_goes_out_together() -> None:
    plan = share(weights(*[100] * 10_000), 2000)
    assert plan.rest is not None
    assert len(plan.shares) == plan.rest
    assert 10 < plan.rest < 20
    assert not plan.whole


def test_many_images_are_shared_out_quickly() -> None:
    plan = share([Weight(1600, SOLID)] * 20_000, 20_000)
    assert plan.tokens <= 20_000


@pytest.mark.parametrize(
    ("block", "tokens", "cuttable"),
    [
        ({"type": "text", "text": "word " * 1000}, 1000, True),
        ({"type": "image", "data": base64.b64encode(png(750, 500)).decode(), "mimeType": "image/png"}, 500, False),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, 1600, False),
        ({"type": "image", "data": "no base64!", "mimeType": "image/png"}, 1600, False),
        ({"type": "audio", "data": "A" * 85_000, "mimeType": "audio/wav"}, 100, False),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "word " * 1000}}, 1000, True),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": png(99, 99).hex()}}, 150, False),
        ({"type": "resource_link", "uri": "a:b", "name": "n"}, 60, False),
    ],
)
def test_blocks_cost_what_providers_count(block: dict[str, object], tokens: int, cuttable: bool) -> None:
    weight = weigh(json.dumps(block).encode())
    assert weight.cuttable == cuttable
    assert tokens * 0.6 < weight.tokens < tokens * 1.6


@pytest.mark.parametrize("raw", [b"null", b"5", b'{"type": 5}', b"[", b'{"type":"text"}', b'{"type":"\xff"}'])
def test_what_is_no_block_has_a_weight_too(raw: bytes) -> None:
    assert weigh(raw).tokens > 0
    assert not weigh(raw).cuttable
