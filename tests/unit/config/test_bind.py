"""JSON becomes structs; what does not fit is named with key, expectation and finding."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from polyplex.config.bind import bind
from polyplex.config.jsonc import parse
from polyplex.config.source import Source
from polyplex.errors import ConfigError


class Inner(Struct, frozen=True, rename="camel"):
    deep_key: int = 0


class Sample(Struct, frozen=True, rename="camel"):
    text: str = ""
    flag: bool = False
    share: Annotated[float, Meta(gt=0, le=10)] = 1.0
    count: Annotated[int, Meta(ge=1)] | None = None
    mood: Annotated[Literal["calm", "wild"], Meta(description="...")] = "calm"
    names: tuple[str, ...] = ()
    secrets: tuple[Annotated[str, Meta(min_length=4)], ...] = ()
    pairs: dict[str, str] = {}
    inner: Inner = Inner()
    inners: dict[str, Inner] = {}
    anything: dict[str, Any] = {}


def bound(text: str, *expanded: tuple[str | int, ...]) -> tuple[Sample, list[str]]:
    document = parse(text, Path("f.json"))
    source = Source(Path("f.json"), Path("/"), document, expanded=set(expanded))
    return bind(Sample, document.value, (), source), source.warnings


def test_every_kind_of_value_is_bound() -> None:
    sample, warnings = bound(
        '{"text": "t", "flag": true, "share": 2, "count": 3, "mood": "wild", "names": ["a"], "pairs": {"a": "b"},'
        ' "inner": {"deepKey": 1}, "inners": {"x": {"deepKey": 2}}, "anything": {"a": [null, {"b": 1.5}]}}'
    )
    expected = Sample(
        "t", True, 2.0, 3, "wild", ("a",), (), {"a": "b"}, Inner(1), {"x": Inner(2)}, {"a": [None, {"b": 1.5}]}
    )
    assert (sample, warnings) == (expected, [])
    assert isinstance(sample.share, float)
    assert bound('{"count": null}')[0].count is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "f.json:1: expected an object, found a list"),
        ('{"text": 1}', "text: expected a string, found the number 1"),
        ('{"text": null}', "text: expected a string, found null"),
        ('{"flag": "true"}', "flag: expected true or false, found a string"),
        ('{"flag": 1}', "flag: expected true or false, found the number 1"),
        ('{"share": true}', "share: expected a number greater than 0 and at most 10, found true"),
        ('{"share": 0}', "share: expected a number greater than 0 and at most 10, found the number 0"),
        ('{"share": "5"}', "share: expected a number greater than 0 and at most 10, found a string"),
        ('{"count": 0}', "count: expected a whole number at least 1, found the number 0"),
        ('{"count": 1.5}', "count: expected a whole number at least 1, found the number 1.5"),
        ('{"mood": "Calm"}', 'mood: expected one of "calm", "wild", found "Calm"; did you mean "calm"?'),
        ('{"mood": 3}', 'mood: expected one of "calm", "wild", found the number 3'),
        ('{"names": "a"}', "names: expected a list, found a string"),
        ('{"names": ["a",\n 2]}', "f.json:2: names[1]: expected a string, found the number 2"),
        ('{"secrets": ["abcd", "abc"]}', "secrets[1]: expected at least 4 characters, found 3"),
        ('{"secrets": [4]}', "secrets[0]: expected a string, found the number 4"),
        ('{"pairs": {"a b": {}}}', 'pairs["a b"]: expected a string, found an object'),
        ('{"inner": {\n"deepKey": []}}', "f.json:2: inner.deepKey: expected a whole number, found a list"),
        ('{"inners": {"x": false}}', "inners.x: expected an object, found false"),
    ],
)
def test_a_wrong_type_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(text)
    assert str(caught.value).endswith(message)


def test_unknown_keys_are_warned_of_with_the_closest_known() -> None:
    _, warnings = bound('{"flagg": 1,\n"INNER": {}, "zzz": 2, "inner": {"deep": 1, "deep_key": 1}}')
    assert warnings == [
        'f.json:1: flagg: unknown key, ignored; did you mean "flag"?',
        'f.json:2: INNER: unknown key, ignored; did you mean "inner"?',
        "f.json:2: zzz: unknown key, ignored",
        'f.json:2: inner.deep: unknown key, ignored; did you mean "deepKey"?',
        'f.json:2: inner.deep_key: unknown key, ignored; did you mean "deepKey"?',
    ]


def test_a_variable_may_hold_a_number_or_a_boolean() -> None:
    sample, _ = bound('{"share": "2.5", "flag": "true", "count": "7"}', ("share",), ("flag",), ("count",))
    assert (sample.share, sample.flag, sample.count) == (2.5, True, 7)


@pytest.mark.parametrize("key", ["share", "mood"])
def test_what_a_variable_held_is_never_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(f'{{"{key}": "hunter2"}}', (key,))
    assert "hunter2" not in str(caught.value)
    assert "found a string" in str(caught.value)


def test_values_that_json_has_not_are_named_by_their_type() -> None:
    source = Source(None, Path("/"), parse("{}"))
    with pytest.raises(ConfigError, match="text: expected a string, found a Python PosixPath"):
        bind(Sample, {"text": Path("/x")}, (), source)
    with pytest.raises(ConfigError, match="every key must be a string"):
        bind(Sample, {1: "x"}, (), source)
