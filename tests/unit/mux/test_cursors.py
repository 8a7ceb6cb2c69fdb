import base64

import pytest

from polyplex.errors import RpcError
from polyplex.mux.cursors import seal, unseal


@pytest.mark.parametrize("after", ["", "a__b", "docs+file:///é", "x" * 1000])
def test_a_cursor_gives_back_what_was_sealed(after: str) -> None:
    assert unseal("tools/list", seal("tools/list", after, 7)) == (after, 7)


def test_a_cursor_is_safe_in_urls_and_logs() -> None:
    assert all(seal("tools/list", "x" * size, 0).replace("-", "").replace("_", "").isalnum() for size in range(20))


def refused(cursor: str, method: str = "tools/list") -> bool:
    with pytest.raises(RpcError) as caught:
        unseal(method, cursor)
    return caught.value.code == -32602


@pytest.mark.parametrize(
    "cursor", ["", "=", "no-such-cursor", "é", "\ud800", "AAAA", "A" * 5, "A" * 100_000, "\x00", "2"]
)
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    assert refused(cursor)


def test_the_cursor_of_another_list_is_refused() -> None:
    assert refused(seal("tools/list", "a", 1), "prompts/list")


def test_every_change_of_one_character_is_refused() -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=! \n"
    for after in ("a", "ab", "abc"):
        cursor = seal("tools/list", after, 3)
        for place in range(len(cursor)):
            for letter in alphabet:
                changed = cursor[:place] + letter + cursor[place + 1 :]
                assert changed == cursor or refused(changed)


@pytest.mark.parametrize("added", ["=", "==", "!", "\n", " ", "A", "AAAA", "é"])
def test_added_characters_are_refused(added: str) -> None:
    for after in ("a", "ab", "abc"):
        cursor = seal("tools/list", after, 3)
        assert refused(cursor + added)
        assert refused(added + cursor)


def test_another_spelling_of_the_same_bytes_is_refused() -> None:
    spelled = 0
    for size in range(60):
        cursor = seal("tools/list", "?" * size, size)
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        other = base64.b64encode(data).decode()
        if other != cursor:
            spelled += 1
            assert refused(other)
    assert spelled
