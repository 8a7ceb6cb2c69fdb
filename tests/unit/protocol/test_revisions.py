import pytest

from polyplex.protocol import revisions
from polyplex.protocol.revisions import Era

ALL = (*revisions.LEGACY_REVISIONS, *revisions.MODERN_REVISIONS)


def test_revisions_are_in_order_and_each_is_of_one_era() -> None:
    assert list(ALL) == sorted(set(ALL))
    assert [revisions.era_of(revision) for revision in ALL] == [Era.LEGACY] * 4 + [Era.MODERN]


def test_revisions_to_come_are_modern() -> None:
    assert revisions.era_of("2027-01-01") is Era.MODERN
    assert revisions.era_of("2024-01-01") is Era.LEGACY


@pytest.mark.parametrize("revision", revisions.LEGACY_REVISIONS)
def test_a_known_legacy_revision_is_granted(revision: str) -> None:
    assert revisions.negotiate(revision) == revision


@pytest.mark.parametrize("requested", ["", "1.0", "2023-01-01", "2099-01-01", revisions.LATEST_MODERN])
def test_any_other_revision_is_answered_with_the_latest_legacy_one(requested: str) -> None:
    assert revisions.negotiate(requested) == "2025-11-25"


def test_batches_and_resumption_exist_where_the_specification_has_them() -> None:
    assert [revision for revision in ALL if revisions.allows_batches(revision)] == ["2025-03-26"]
    assert [revision for revision in ALL if revisions.has_resumption(revision)] == [
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
    ]


def test_no_method_is_of_two_minds() -> None:
    assert not revisions.LEGACY_ONLY_METHODS & revisions.MODERN_ONLY_METHODS
    assert set(revisions.LIST_METHODS) <= revisions.CACHEABLE_METHODS
    assert not revisions.ROUTED_METHODS & set(revisions.LIST_METHODS)
