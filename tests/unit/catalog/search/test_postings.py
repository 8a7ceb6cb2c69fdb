import numpy as np
import pytest

from polyplex.catalog.search.postings import FIELDS, MAX_SEGMENTS, Postings, frequencies

ALL = np.ones(8, np.bool_)


def test_a_word_in_the_name_counts_more_than_in_the_description() -> None:
    assert frequencies({"name": ["read"]})["read"] > frequencies({"summary": ["read"]})["read"]
    assert frequencies({"summary": ["read"]})["read"] > frequencies({"details": ["read"]})["read"]


def test_repeats_and_length_gain_nothing() -> None:
    honest = frequencies({"summary": ["read", "fil"]})
    repeated = frequencies({"summary": ["read", "fil"] * 30})
    stuffed = frequencies({"summary": ["read", "fil", *(f"word{i}" for i in range(500))]})
    assert repeated["read"] <= honest["read"]
    assert stuffed["read"] < honest["read"]
    assert len(stuffed) <= FIELDS["summary"].limit


def test_rare_terms_count_more_and_unknown_ones_count_as_missing() -> None:
    postings = Postings()
    postings.add({0: {"read": 1.0, "fil": 1.0}, 1: {"read": 1.0, "mail": 1.0}, 2: {"read": 1.0}})
    found, best, _ = postings.scores({"mail": 1.0, "read": 1.0}, ALL[:3])
    assert found[1] > found[0] == found[2] > 0
    more, attainable, missing = postings.scores({"mail": 1.0, "read": 1.0, "nowhere": 1.0}, ALL[:3])
    assert more.tolist() == found.tolist()
    assert attainable > best
    assert missing == pytest.approx(1 / 3)


def test_what_may_not_be_found_changes_no_score() -> None:
    alone, both = Postings(), Postings()
    alone.add({0: {"read": 1.0, "fil": 2.0}})
    both.add({0: {"read": 1.0, "fil": 2.0}, 1: {"read": 1.0}, 2: {"read": 3.0}})
    query = {"read": 1.0, "fil": 1.0}
    only_first = np.array([True, False, False])
    assert both.scores(query, only_first)[0][0] == alone.scores(query, ALL[:1])[0][0]
    assert both.scores(query, only_first)[0][1:].tolist() == [0, 0]


def test_growing_step_by_step_comes_to_the_same() -> None:
    documents = {slot: {"read": 1.0 + slot, f"word{slot}": 1.0} for slot in range(3 * MAX_SEGMENTS)}
    at_once, by_steps = Postings(), Postings()
    at_once.add(documents)
    for slot, found in documents.items():
        by_steps.add({slot: found})
    among = np.ones(len(documents), np.bool_)
    query = {"read": 1.0, "word3": 1.0}
    assert by_steps.scores(query, among)[0] == pytest.approx(at_once.scores(query, among)[0])


def test_removed_documents_leave_nothing_behind_once_cleaned() -> None:
    postings = Postings()
    postings.add({0: {"read": 1.0, "old": 1.0}, 1: {"read": 1.0}})
    postings.remove({0})
    assert postings.clean() == {0}
    assert "old" not in postings
    assert "read" in postings
    postings.add({0: {"new": 1.0}})
    assert postings.scores({"new": 1.0, "old": 1.0}, ALL[:2])[0].tolist() == pytest.approx(
        [postings.scores({"new": 1.0}, ALL[:2])[0][0], 0]
    )
    assert Postings().clean() == set()
