import string

from hypothesis import given
from hypothesis import strategies as st

from polyplex.downstream.session import LOCAL, Session, new_session_id
from polyplex.downstream.session_table import GRACE_SECONDS, SessionTable
from polyplex.protocol.revisions import LATEST_LEGACY, Era


def session(caller: str = LOCAL) -> Session:
    return Session(Era.LEGACY, LATEST_LEGACY, http=True, caller=caller)


def begun(caller: str = LOCAL) -> tuple[SessionTable, Session]:
    table, one = SessionTable(), session(caller)
    table.add(one)
    return table, one


def test_ids_are_long_visible_and_never_the_same() -> None:
    ids = {new_session_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(each) >= 32 and set(each) <= set(string.ascii_letters + string.digits + "-_") for each in ids)


def test_a_session_is_found_by_its_caller_alone() -> None:
    table, one = begun("alice")
    assert table.find(one.id, "alice", 0.0) is one
    assert table.find(one.id, "bob", 0.0) is None
    assert table.find(one.id + "x", "alice", 0.0) is None


def test_a_replaced_id_works_for_a_while_and_the_new_one_from_then_on() -> None:
    table, one = begun()
    new = table.rotate(one.id, 100.0)
    assert new is not None
    assert new != one.id
    assert table.find(new, LOCAL, 100.0) is one
    assert table.find(one.id, LOCAL, 100.0 + GRACE_SECONDS - 1) is one
    assert table.find(one.id, LOCAL, 100.0 + GRACE_SECONDS) is None
    assert table.find(one.id, LOCAL, 100.0) is None, "once over, it is over"
    assert table.find(new, LOCAL, 1e9) is one
    assert set(table.by_id) == {new}


def test_an_answer_that_was_lost_is_made_good_but_an_id_in_use_is_not_replaced_by_the_old_one() -> None:
    table, one = begun()
    lost = table.rotate(one.id, 0.0)
    new = table.rotate(one.id, 10.0)
    assert lost is not None
    assert new is not None
    assert table.find(lost, LOCAL, 10.0) is None
    assert table.find(one.id, LOCAL, GRACE_SECONDS - 1) is one
    assert table.find(new, LOCAL, GRACE_SECONDS - 1) is one
    assert table.rotate(one.id, GRACE_SECONDS - 1) is None, "whoever has the old id must not get at a new one"
    assert table.find(one.id, LOCAL, GRACE_SECONDS) is None, "asking again gives no more time"
    assert table.rotate(new, GRACE_SECONDS) is not None


def test_all_ids_of_a_session_end_with_it() -> None:
    table, one = begun()
    other = session()
    table.add(other)
    new = table.rotate(one.id, 0.0)
    table.remove(one)
    table.remove(one)
    assert new is not None
    assert [table.find(each, LOCAL, 0.0) for each in (one.id, new, other.id)] == [None, None, other]
    assert len(table) == 1
    table.tick(1e9)


@given(
    st.lists(st.tuples(st.sampled_from(["rotate", "find", "tick", "remove"]), st.integers(0, 5), st.integers(0, 40)))
)
def test_whatever_is_done_an_id_leads_to_its_own_session_and_nothing_is_left(steps: list[tuple[str, int, int]]) -> None:
    table = SessionTable()
    owners: dict[str, Session] = {}
    now = 0.0
    for one in [session() for _ in range(3)]:
        table.add(one)
        owners[one.id] = one
    for step, which, seconds in steps:
        now += seconds
        identifier = list(owners)[which % len(owners)]
        found = table.find(identifier, LOCAL, now)
        assert found in (None, owners[identifier])
        if step == "rotate" and found is not None:
            new = table.rotate(identifier, now)
            if new is not None:
                owners[new] = found
        elif step == "tick":
            table.tick(now)
        elif step == "remove":
            table.remove(owners[identifier])
        for one in table.sessions.values():
            assert any(table.find(each, LOCAL, now) is one for each in list(table.by_id)), "every session has an id"
    for one in list(table.sessions.values()):
        table.remove(one)
    assert not table.by_id
    assert not table._replaced
    assert not table._unused
    assert not table._ids
