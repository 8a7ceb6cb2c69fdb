"""Counters count, and the text form is what Prometheus reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.telemetry.metrics import MAX_CHILDREN, Registry


def test_the_text_form() -> None:
    registry = Registry()
    calls = registry.counter("polyplex_calls_total", "Calls, by\nserver \\ outcome.", ("server", "outcome"))
    calls.labels("files", "ok").value += 2
    calls.labels('a"b\\c\nd', "ok").value += 0.5
    registry.gauge("polyplex_sessions", "Open sessions.").labels().value = 3
    seconds = registry.histogram("polyplex_call_seconds", "Duration.", ("server",), bounds=(0.1, 1))
    for number in (0.05, 0.1, 0.5, 7):
        seconds.labels("files").observe(number)
    assert registry.render() == (
        "# HELP polyplex_call_seconds Duration.\n"
        "# TYPE polyplex_call_seconds histogram\n"
        'polyplex_call_seconds_bucket{server="files",le="0.1"} 2\n'
        'polyplex_call_seconds_bucket{server="files",le="1"} 3\n'
        'polyplex_call_seconds_bucket{server="files",le="+Inf"} 4\n'
        'polyplex_call_seconds_sum{server="files"} 7.65\n'
        'polyplex_call_seconds_count{server="files"} 4\n'
        "# HELP polyplex_calls_total Calls, by\\nserver \\\\ outcome.\n"
        "# TYPE polyplex_calls_total counter\n"
        'polyplex_calls_total{server="files",outcome="ok"} 2\n'
        'polyplex_calls_total{server="a\\"b\\\\c\\nd",outcome="ok"} 0.5\n'
        "# HELP polyplex_sessions Open sessions.\n"
        "# TYPE polyplex_sessions gauge\n"
        "polyplex_sessions 3\n"
    )


def test_an_empty_registry_is_empty_text() -> None:
    assert Registry().render() == ""


def test_a_metric_without_labels_is_there_from_the_start() -> None:
    registry = Registry()
    registry.counter("a_total", "A.")
    assert registry.render().endswith("a_total 0\n")


def test_the_number_of_children_is_bounded() -> None:
    registry = Registry()
    family = registry.counter("a_total", "A.", ("name",))
    for number in range(MAX_CHILDREN + 50):
        family.labels(str(number)).value += 1
    lines = [line for line in registry.render().splitlines() if line.startswith("a_total")]
    assert len(lines) == MAX_CHILDREN + 1
    assert lines[-1] == 'a_total{name="other"} 50'
    assert family.labels("0").value == 1


def test_a_removed_child_is_gone_and_starts_anew() -> None:
    registry = Registry()
    family = registry.gauge("a", "A.", ("name",))
    family.labels("x").value = 5
    family.remove("x")
    family.remove("never there")
    assert 'name="x"' not in registry.render()
    assert family.labels("x").value == 0


def test_the_same_name_is_the_same_family_and_never_another_kind() -> None:
    registry = Registry()
    family = registry.counter("a_total", "A.", ("name",))
    assert registry.counter("a_total", "A.", ("name",)) is family
    assert registry.histogram("h", "H.") is registry.histogram("h", "H.")
    with pytest.raises(ValueError, match="already a counter"):
        registry.gauge("a_total", "A.", ("name",))
    with pytest.raises(ValueError, match="already a counter"):
        registry.histogram("a_total", "A.", ("name",))
    with pytest.raises(ValueError, match="already a histogram"):
        registry.counter("h", "H.")
    with pytest.raises(ValueError, match="with the labels"):
        registry.counter("a_total", "A.")


def test_mistakes_of_the_caller_are_errors() -> None:
    registry = Registry()
    with pytest.raises(ValueError, match="not a metric"):
        registry.counter("a-b", "A.")
    with pytest.raises(ValueError, match="has the labels"):
        registry.counter("a_total", "A.", ("name",)).labels()
    with pytest.raises(ValueError, match="must rise"):
        registry.histogram("h", "H.", bounds=(1, 1))


def test_gauges_may_be_read_when_rendered() -> None:
    registry = Registry()
    gauge = registry.gauge("a", "A.").labels()
    values = iter([float("inf"), float("-inf"), float("nan"), 1e300])
    registry.before_render(lambda: setattr(gauge, "value", next(values)))
    assert [registry.render().split()[-1] for _ in range(4)] == ["+Inf", "-Inf", "NaN", "1e+300"]


@given(st.lists(st.floats(min_value=-100, max_value=100)))
def test_buckets_are_cumulative(numbers: list[float]) -> None:
    registry = Registry()
    child = registry.histogram("h", "H.", bounds=(-1, 0, 10)).labels()
    for number in numbers:
        child.observe(number)
    counts = {label: count for suffix, label, count in child.samples() if suffix == "_bucket"}
    expected = {f'le="{bound}"': sum(number <= bound for number in numbers) for bound in (-1, 0, 10)}
    assert counts == expected | {'le="+Inf"': len(numbers)}
