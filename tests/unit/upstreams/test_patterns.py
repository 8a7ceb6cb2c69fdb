import pytest

from polyplex.upstreams.patterns import Patterns


@pytest.mark.parametrize(
    ("allow", "deny", "name", "allowed"),
    [
        (("*",), (), "anything", True),
        (("*",), (), "", True),
        ((), (), "anything", False),
        (("read_*",), (), "read_file", True),
        (("read_*",), (), "read_", True),
        (("read_*",), (), "xread_file", False),
        (("read_*",), (), "READ_file", False),
        (("a?c",), (), "abc", True),
        (("a?c",), (), "ac", False),
        (("a", "b"), (), "b", True),
        (("a.c",), (), "abc", False),
        (("[ab]",), (), "a", True),
        (("*",), ("*",), "a", False),
        (("a",), ("a",), "a", False),
        (("*",), ("*_secret", "x"), "x", False),
        (("*",), ("*_secret",), "a_secret", False),
        (("*",), ("*_secret",), "a_secret_", True),
        (("*",), ("a*",), "a\nb", False),
    ],
)
def test_deny_wins_and_whole_names_are_matched(
    allow: tuple[str, ...], deny: tuple[str, ...], name: str, allowed: bool
) -> None:
    assert Patterns(allow, deny).allows(name) is allowed
