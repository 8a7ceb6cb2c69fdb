import pytest

from polyplex.catalog.search.names import EXACT, LOCAL, NEAR, Label, Names, edit_distance

LABELS = [
    Label("files__read_file", "files", "read_file", "Read a file"),
    Label("disk__read_file", "disk", "read_file", ""),
    Label("weather__getForecast", "weather", "getForecast", ""),
    Label("trains__get-tickets", "trains", "get-tickets", ""),
    Label("mail__main", "mail", "main", ""),
]


@pytest.fixture
def names() -> Names:
    found = Names()
    for slot, label in enumerate(LABELS):
        found.add(slot, label)
    return found


def known(term: str) -> bool:
    return term in {"read", "fil", "forecast", "ticket", "mail", "weath", "get", "train", "main"}


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("files__read_file", {0: EXACT}),
        ("FILES READ FILE", {0: EXACT}),
        ("files.read-file", {0: EXACT}),
        ("files/readFile", {0: EXACT}),
        ("read_file", {0: LOCAL, 1: LOCAL}),
        ("readfile", {0: LOCAL, 1: LOCAL}),
        ("Read a file", {0: LOCAL}),
        ("get_forecast", {2: LOCAL}),
        ("please call get_forecast for Tokyo", {2: LOCAL}),
        ("what does weather__getForecast do?", {2: EXACT}),
        ("reading files", {0: NEAR, 1: NEAR}),
        ("get_forcast", {2: NEAR}),
        ("get forceast", {2: NEAR}),
        ("getTickts", {3: NEAR}),
        ("mcp__weather__get_forecast", {2: EXACT}),
        ("functions.get_forecast", {2: LOCAL}),
        ("get forecast weather", {2: NEAR}),
        ("get a forecast from the weather server's tools", {}),
        ("use the get forecast tool", {2: NEAR}),
        ("open https://example.com/docs/main", {}),
        ("mail", {}),
        ("maim", {}),
        ("forecast", {}),
        ("something else entirely", {}),
        ("", {}),
        ("   ", {}),
        ("___", {}),
        ("x" * 10_000, {}),
    ],
)
def test_a_query_means_a_name_in_any_spelling(names: Names, query: str, meant: dict[int, int]) -> None:
    assert names.meant(query, known) == meant


def test_a_known_word_is_no_slip_of_the_pen(names: Names) -> None:
    assert names.meant("get tracker", lambda _: True) == {}


def test_a_removed_name_is_forgotten_and_its_namesake_is_not(names: Names) -> None:
    names.remove(0, LABELS[0])
    assert names.meant("filesreadfile", known) == {}
    assert names.meant("read_file", known) == {1: LOCAL}
    for slot, label in list(enumerate(LABELS))[1:]:
        names.remove(slot, label)
    assert names.meant("read_file", known) == {}
    assert names.meant("get_forcast", known) == {}


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "acb", 1),
        ("abc", "ab", 1),
        ("abc", "abxc", 1),
        ("abc", "axc", 1),
        ("abc", "xyz", 3),
        ("abcdef", "a", 3),
    ],
)
def test_edits_are_counted_up_to_a_limit(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 2) == distance
    assert edit_distance(other, one, 2) == distance
