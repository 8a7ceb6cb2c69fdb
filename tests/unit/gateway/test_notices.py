import pytest

from polyplex.gateway.asks import elicitation_id


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
