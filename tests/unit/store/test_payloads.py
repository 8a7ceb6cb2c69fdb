"""Names of payloads, and the books of a store."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import PayloadRefused
from polyplex.store.ledger import Ledger, has_expired
from polyplex.store.payload import URI_PREFIX, Name, folder_of, id_of, is_folder, lifetime_of, new_id
from polyplex.store.place import Kept

NOW = 1_800_000_000.0


@given(st.floats(0, 4e9), st.none() | st.floats(0.001, 31_536_000))
def test_an_id_says_when_it_was_made_and_when_it_expires(now: float, ttl: float | None) -> None:
    identifier = new_id(now, ttl)
    lifetime = lifetime_of(identifier)
    assert lifetime is not None
    assert lifetime.created == pytest.approx(now, abs=0.011)
    if ttl is None:
        assert lifetime.expires is None
    else:
        assert lifetime.expires == pytest.approx(now + ttl, abs=0.011)
    assert id_of(URI_PREFIX + identifier) == id_of(identifier) == identifier


def test_ids_have_128_random_bits() -> None:
    raws = {base64.urlsafe_b64decode(new_id(NOW, 60) + "=") for _ in range(200)}
    assert len({raw[:16] for raw in raws}) == 200
    for position in range(16):
        assert len({raw[position] for raw in raws}) > 50


@given(st.text(max_size=60) | st.text("AZaz09-_./%\\", min_size=35, max_size=35))
def test_what_is_no_id_names_nothing(text: str) -> None:
    identifier = id_of(text)
    if identifier is not None:
        assert "/" not in identifier and "." not in identifier
        assert lifetime_of(identifier) is not None


@pytest.mark.parametrize(
    "text", ["", "../../etc/passwd", "polyplex://payload/", "polyplex://payload/../x", "x" * 35 + "/"]
)
def test_paths_are_no_ids(text: str) -> None:
    assert id_of(text) is None


def test_each_id_has_one_spelling() -> None:
    identifier = new_id(NOW, 60)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same = [identifier[:-1] + letter for letter in alphabet if lifetime_of(identifier[:-1] + letter) is not None]
    assert len({base64.urlsafe_b64decode(text + "=") for text in same}) == len(same)


@given(st.text(max_size=30), st.text(max_size=30))
def test_callers_have_folders_of_their_own(one: str, other: str) -> None:
    assert is_folder(folder_of(one))
    assert (folder_of(one) == folder_of(other)) == (one == other)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=40),
    st.integers(1, 100),
    st.none() | st.integers(1, 100),
)
def test_no_caller_and_not_all_together_have_more_than_they_may(
    writes: list[tuple[str, int]], most: int, most_each: int | None
) -> None:
    ledger = Ledger(most, most_each)
    kept: dict[Name, int] = {}
    for number, (owner, size) in enumerate(writes):
        name = Name(folder_of(owner), new_id(NOW + number, None))
        if size > ledger.caller_max_bytes:
            continue  # the store refuses those before
        ledger.reserve(name.folder, size)
        for removed in ledger.make_room(name.folder):
            own = [known for known in kept if known.folder == name.folder]
            assert removed in (own[:1] + list(kept)[:1])  # the oldest of the caller, or of all
            del kept[removed]
        ledger.release(name.folder, size)
        ledger.enter(name, size)
        kept[name] = size
        assert ledger.total == sum(kept.values()) <= most
        for each in "abc":
            used = sum(size for known, size in kept.items() if known.folder == folder_of(each))
            assert ledger.used_by(folder_of(each)) == used <= ledger.caller_max_bytes
    assert ledger.reserved == 0


def test_what_is_coming_counts_and_is_never_removed() -> None:
    ledger = Ledger(100, None)
    ledger.reserve("a", 60)
    assert ledger.make_room("a") == []
    ledger.reserve("b", 60)
    with pytest.raises(PayloadRefused, match=r"payloads\.maxBytes"):
        ledger.make_room("b")
    ledger.release("b", 60)
    ledger.release("a", 60)
    assert (ledger.total, ledger.reserved) == (0, 0)


def test_a_listing_is_believed_and_a_lowered_limit_holds() -> None:
    names = [Name(folder_of(owner), new_id(NOW + age, 10)) for age, owner in enumerate("aabb")]
    ledger = Ledger(70, 40)
    ledger.load([Kept(name, 30) for name in reversed(names)])
    assert ledger.over
    assert ledger.trim() == [names[0], names[2]]
    assert not ledger.over
    assert ledger.expired(NOW + 11.5) == [names[1]]
    assert has_expired(names[3], NOW + 13) and not has_expired(names[3], NOW + 12.9)


def test_what_a_listing_found_first_counts_once() -> None:
    name = Name(folder_of("me"), new_id(NOW, None))
    ledger = Ledger(100, None)
    ledger.reserve(name.folder, 30)
    ledger.load([Kept(name, 31)])
    ledger.release(name.folder, 30)
    ledger.enter(name, 30)
    assert (ledger.total, ledger.used_by(name.folder), ledger.reserved) == (30, 30, 0)
