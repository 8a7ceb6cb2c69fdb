import re

import pytest

from polyplex.mux.uris import Template, best_template, public_uri, split_uri, uri_label

SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")


@pytest.mark.parametrize("server", ["docs", "a", "my-server", "v1.2", "a-b-c"])
def test_a_legal_server_name_is_its_own_label(server: str) -> None:
    assert uri_label(server) == server


@pytest.mark.parametrize(
    "server", ["Docs", "1st", "a_b", "a b", "", "-a", "a.", "é", "a+b", "a/b", "--", "docs-012abc"]
)
def test_any_other_server_gets_a_label_with_a_hash(server: str) -> None:
    label = uri_label(server)
    assert SCHEME.fullmatch(label) and "+" not in label
    assert re.search(r"-[0-9a-f]{6}$", label)


def test_labels_are_unique() -> None:
    servers = ["docs", "Docs", "DOCS", "do cs", "do-cs", "do_cs", "docs.", "-docs", "é", "è", "", "-", "s", "1", "s-1"]
    servers += [uri_label(server) for server in servers]
    assert len({uri_label(server) for server in servers}) == len(set(servers))


@pytest.mark.parametrize(
    ("local", "public"),
    [
        ("file:///a", "docs+file:///a"),
        ("http://x/y?z#w", "docs+http://x/y?z#w"),
        ("file:///{+path}", "docs+file:///{+path}"),
        ("ui://chart/view.html", "ui://docs/chart/view.html"),
        ("UI://Chart", "UI://docs/Chart"),
        ("ui://", "ui://docs/"),
        ("other+file:///a", "docs+other+file:///a"),
        ("docs+file:///a", "docs+docs+file:///a"),
        ("no uri at all", "docs+no uri at all"),
        ("", "docs+"),
    ],
)
def test_a_public_uri_splits_into_its_server_and_what_it_was(local: str, public: str) -> None:
    assert public_uri("docs", local) == public
    assert split_uri(public, {"docs": "the docs"}) == ("the docs", local)


@pytest.mark.parametrize(
    "uri", ["file:///a", "other+file:///a", "ui://other/x", "ui://docs", "docs", "", "ui://", "+a"]
)
def test_a_uri_of_no_known_server_does_not_split(uri: str) -> None:
    assert split_uri(uri, {"docs": "docs"}) is None


def test_schemes_and_hosts_are_found_in_any_case() -> None:
    """RFC 3986, 6.2.2.1: clients may normalise both to lower case, and some write them otherwise."""
    assert split_uri("DOCS+file:///A", {"docs": "d"}) == ("d", "file:///A")
    assert split_uri("ui://DOCS/A", {"docs": "d"}) == ("d", "ui://A")


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("file:///a", "file:///a", True),
        ("file:///a", "file:///ab", False),
        ("file:///{path}", "file:///x/y", True),
        ("file:///{path}", "http:///x", False),
        ("a://{x}/b/{y}", "a://1/b/2", True),
        ("a://{x}/b/{y}", "a://1/c/2", False),
        ("a://{x}/end", "a://1/end", True),
        ("a://{x}/end", "a://end", False),
        ("a://{x}a", "a://a", True),
        ("ab{x}bc", "abc", False),
        ("ab{x}b{y}bc", "abbbc", True),
        ("ab{x}b{y}bc", "abbc", False),
        ("{+any}", "", True),
        ("{x}{y}", "z", True),
        ("a://{x", "a://{x", True),
        ("a://{?q,r}", "a://?q=1&r=2", True),
    ],
)
def test_a_template_matches_what_can_have_come_from_it(template: str, uri: str, fits: bool) -> None:
    assert Template(template).matches(uri) is fits


def test_the_most_literal_template_wins() -> None:
    templates = [
        (Template("{+any}"), "all"),
        (Template("db://{table}"), "a"),
        (Template("db://{row}"), "b"),
        (Template("db://{x}"), "a"),
        (Template("db://users/{id}"), "users"),
    ]
    assert best_template(templates, "db://users/1") == ["users"]
    assert best_template(templates, "db://orders") == ["a", "b"]
    assert best_template(templates, "x") == ["all"]
    assert best_template(templates[1:], "x") == []
