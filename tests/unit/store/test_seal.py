import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.store import seal
from polyplex.store.seal import KeyRing, SealError, kept_ring, key_of

OLD, NEW = key_of("old"), key_of("new")


@given(st.binary(max_size=300), st.text(max_size=20))
def test_what_is_sealed_opens_for_its_purpose_only(plain: bytes, purpose: str) -> None:
    ring = KeyRing([NEW, OLD])
    sealed = ring.seal(plain, purpose)
    assert ring.open(sealed, purpose) == plain
    with pytest.raises(SealError):
        ring.open(sealed, purpose + "x")


@given(st.binary(min_size=1, max_size=60), st.data())
def test_no_changed_text_opens(plain: bytes, data: st.DataObject) -> None:
    ring = KeyRing([NEW])
    sealed = ring.seal(plain, "p")
    place = data.draw(st.integers(0, len(sealed) - 1))
    letter = data.draw(st.sampled_from("AZaz09-_").filter(lambda letter: letter != sealed[place]))
    changed = sealed[:place] + letter + sealed[place + 1 :]
    try:
        assert ring.open(changed, "p") == plain  # the last letter may hold bits that mean nothing
        assert place == len(sealed) - 1
    except SealError:
        pass


@given(st.text(max_size=200))
def test_no_text_of_others_opens(text: str) -> None:
    with pytest.raises(SealError):
        KeyRing([NEW]).open(text, "p")


def test_a_rotated_key_still_opens_and_a_forgotten_one_does_not() -> None:
    sealed = KeyRing([OLD]).seal(b"state", "p")
    assert KeyRing([NEW, OLD]).open(sealed, "p") == b"state"
    with pytest.raises(SealError, match="not known here"):
        KeyRing([NEW]).open(sealed, "p")


def test_equal_texts_are_sealed_differently() -> None:
    ring = KeyRing([NEW])
    assert ring.seal(b"x", "p") != ring.seal(b"x", "p")


def test_kept_keys_are_shared_private_and_survive(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "seal.keys"
    sealed = kept_ring(file).seal(b"x", "p")
    assert kept_ring(file).open(sealed, "p") == b"x"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_kept_keys_are_replaced_in_time_and_old_ones_kept_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "seal.keys"
    sealed = [kept_ring(file).seal(b"0", "p")]
    monkeypatch.setattr(seal, "ROTATE_SECONDS", -1.0)
    sealed += [kept_ring(file).seal(b"%d" % number, "p") for number in range(1, 4)]
    monkeypatch.undo()
    ring = kept_ring(file)
    assert [ring.open(text, "p") for text in sealed[1:]] == [b"1", b"2", b"3"]
    with pytest.raises(SealError):
        ring.open(sealed[0], "p")


@pytest.mark.parametrize("content", [b"", b"{}", b"[[1,2]]", b'[[1,"00"]]', b"\xff\xfe", b"null"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "seal.keys"
    file.write_bytes(content)
    sealed = kept_ring(file).seal(b"x", "p")
    assert kept_ring(file).open(sealed, "p") == b"x"


def test_without_a_file_that_can_be_used_the_ring_lasts_as_long_as_the_process(tmp_path: Path) -> None:
    file = tmp_path / "folder"
    file.mkdir()
    ring = kept_ring(file)
    assert ring.open(ring.seal(b"x", "p"), "p") == b"x"
