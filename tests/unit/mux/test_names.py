import re

import pytest

from polyplex.mux.names import LEGAL, hashed_name, public_name, server_slug


@pytest.mark.parametrize(
    ("server", "local", "name"),
    [
        ("files", "read_file", "files__read_file"),
        ("a-b", "c-D9", "a-b__c-D9"),
        ("_a", "b", "_a__b"),
        ("a", "_b", "a___b"),
        ("a", "b__c", "a__b__c"),
        ("a", "get_20240115", "a__get_20240115"),
        ("s" * 30, "t" * 32, "s" * 30 + "__" + "t" * 32),
    ],
)
def test_a_legal_name_is_used_as_it_is(server: str, local: str, name: str) -> None:
    assert public_name(server, local) == name


@pytest.mark.parametrize(
    ("server", "local"),
    [
        ("files", "read.file"),
        ("files", "read file"),
        ("files", "read\n"),
        ("files", ""),
        ("", "read"),
        ("fïles", "read"),
        ("my.server", "read"),
        ("a__b", "c"),
        ("a_", "b"),
        ("a", "x" * 200),
        ("s" * 100, "t"),
        ("日本語", "検索"),
        ("a", "read__0123abcd"),
    ],
)
def test_any_other_name_is_shortened_to_a_legal_one(server: str, local: str) -> None:
    name = public_name(server, local)
    assert LEGAL.fullmatch(name)
    assert re.search(r"__[0-9a-f]{8}$", name)


def test_shortened_names_stay_what_they_are() -> None:
    """Clients keep names in their permissions and histories, so these may never change from release to release."""
    assert public_name("files", "read.file") == "files__read_file__41a584ce"
    assert public_name("my server", "x" * 100) == "my_server__" + "x" * 43 + "__bb0602b8"


LOOK_ALIKES = [
    ("a", "_b"),
    ("a_", "b"),
    ("a__b", "c"),
    ("a", "b__c"),
    ("a", "b.c"),
    ("a", "b_c"),
    ("a", "b-c"),
    ("a", "b c"),
    ("a.b", "c"),
    ("a b", "c"),
    ("a", "x" * 100),
    ("a", "x" * 101),
    ("a" * 30, "x" * 64),
    ("a" * 31, "x" * 64),
    ("ab", "c"),
    ("a", "bc"),
    ("1:a", "b"),
    ("", "1:ab"),
    ("A", "b"),
    ("a", "B"),
    ("é", "b"),
    ("e\u0301", "b"),
    ("", ""),
    ("server", ""),
    ("server", "x"),
]


def test_look_alikes_have_names_of_their_own() -> None:
    names = {pair: public_name(*pair) for pair in LOOK_ALIKES}
    assert len(set(names.values())) == len(LOOK_ALIKES)


@pytest.mark.parametrize(("server", "local"), LOOK_ALIKES)
def test_no_tool_can_take_the_shortened_name_of_another(server: str, local: str) -> None:
    shortened = hashed_name(server, local)
    owner, _, rest = shortened.partition("__")
    assert public_name(owner, rest) != shortened


@pytest.mark.parametrize(
    ("server", "slug"),
    [
        ("files", "files"),
        ("a__b", "a_b"),
        ("__", "server"),
        ("", "server"),
        ("é", "server"),
        ("a" * 50, "a" * 20),
        ("x y", "x_y"),
    ],
)
def test_the_slug_of_a_server_is_short_and_has_no_separator(server: str, slug: str) -> None:
    assert server_slug(server) == slug
