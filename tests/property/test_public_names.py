"""Properties of public names, URIs, labels, cursors and templates: legal, reversible, and nobody else's business."""

import base64
import re
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import RpcError
from polyplex.mux.cursors import seal, unseal
from polyplex.mux.names import LEGAL, hashed_name, public_name, server_slug
from polyplex.mux.uris import Template, public_uri, split_uri, uri_label

SCHEME = re.compile(r"[a-z][a-z0-9.-]*")
TRICKY = st.text("ab_-.: é", max_size=6)
ANY = st.text(max_size=80) | st.text("abcXYZ019_-", max_size=80) | TRICKY
PAIRS = st.tuples(ANY, ANY)
LABELS = st.text(max_size=20) | st.text("abAB01-.+_ ", max_size=8)


@given(PAIRS)
def test_a_public_name_is_legal_and_depends_on_its_pair_alone(pair: tuple[str, str]) -> None:
    name = public_name(*pair)
    assert LEGAL.fullmatch(name)
    assert name == public_name(*pair)


@given(PAIRS, PAIRS)
def test_two_pairs_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (public_name(*one) == public_name(*other)) is (one == other)


@given(st.text("ab_", max_size=5), st.text("ab_.", max_size=6), st.integers(0, 11))
def test_moving_the_border_between_server_and_tool_gives_another_name(server: str, local: str, cut: int) -> None:
    whole = f"{server}__{local}"
    other = whole[:cut], whole[cut + 2 :]
    if other != (server, local):
        assert public_name(*other) != public_name(server, local)


@given(PAIRS)
def test_no_pair_of_plain_names_is_written_as_a_shortened_one(pair: tuple[str, str]) -> None:
    shortened = hashed_name(*pair)
    for cut in range(len(shortened)):
        if shortened.startswith("__", cut):
            assert public_name(shortened[:cut], shortened[cut + 2 :]) != shortened


@given(ANY)
def test_a_slug_is_legal_short_and_has_no_separator(server: str) -> None:
    slug = server_slug(server)
    assert LEGAL.fullmatch(slug) and len(slug) <= 20 and "__" not in slug
    assert slug == slug.strip("_")


@given(LABELS)
def test_a_label_starts_a_legal_scheme(server: str) -> None:
    assert SCHEME.fullmatch(uri_label(server))


@given(LABELS, LABELS)
def test_two_servers_never_share_a_label(one: str, other: str) -> None:
    assert (uri_label(one) == uri_label(other)) is (one == other)
    assert uri_label(uri_label(one)) != uri_label(one) or uri_label(one) == one


URIS = st.text() | st.builds(
    "{}{}".format,
    st.sampled_from(["ui://", "UI://", "Ui:/", "file:///", "docs+", "docs+ui://", "ui://docs/", "+"]),
    st.text(),
)


@given(LABELS, URIS, st.lists(LABELS))
def test_a_public_uri_splits_into_server_and_uri(server: str, uri: str, others: list[str]) -> None:
    labels = {uri_label(name): name for name in (*others, server)}
    public = public_uri(uri_label(server), uri)
    assert split_uri(public, labels) == (server, uri)
    assert split_uri(public, {uri_label(server): server}) == (server, uri)


@given(LABELS, LABELS, URIS, URIS)
def test_two_uris_never_become_one(server: str, other_server: str, uri: str, other_uri: str) -> None:
    one, other = (server, uri), (other_server, other_uri)
    assert (public_uri(uri_label(server), uri) == public_uri(uri_label(other_server), other_uri)) is (one == other)


@given(URIS, st.dictionaries(LABELS.map(uri_label), LABELS))
def test_what_splits_was_put_together_so(uri: str, labels: dict[str, str]) -> None:
    split = split_uri(uri, labels)
    if split is not None:
        server, local = split
        assert any(public_uri(label, local).lower() == uri.lower() for label, name in labels.items() if name == server)


METHODS = st.sampled_from(["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
POSITIONS = st.tuples(METHODS, st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**63 - 1))


def refused(method: str, cursor: str) -> bool:
    with suppress(RpcError):
        unseal(method, cursor)
        return False
    return True


@given(POSITIONS)
def test_a_cursor_opens_to_what_was_sealed(position: tuple[str, str, int]) -> None:
    method, after, offset = position
    assert unseal(method, seal(method, after, offset)) == (after, offset)


@given(POSITIONS, st.data())
def test_a_cursor_with_any_change_is_refused(position: tuple[str, str, int], data: st.DataObject) -> None:
    method, cursor = position[0], seal(*position)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(cursor))] * 2)))
    changed = cursor[:start] + data.draw(st.text(max_size=3)) + cursor[end:]
    assert changed == cursor or refused(method, changed)


@given(METHODS, st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("=")))
def test_a_cursor_from_elsewhere_is_refused(method: str, cursor: str) -> None:
    assert refused(method, cursor)


@given(st.lists(st.text(st.characters(exclude_characters="{}"), max_size=5), min_size=1, max_size=6), st.data())
def test_a_template_matches_every_expansion(literals: list[str], data: st.DataObject) -> None:
    template, uri = literals[0], literals[0]
    for literal in literals[1:]:
        template += "{" + data.draw(st.text("xyz+?,*", max_size=3)) + "}" + literal
        uri += data.draw(st.text(max_size=5)) + literal
    assert Template(template).matches(uri)


@given(st.text("ab{}", max_size=12), st.text("ab", max_size=12))
def test_a_template_matches_as_a_regular_expression_would(template: str, uri: str) -> None:
    pattern = ".*".join(re.escape(part) for part in re.split(r"\{[^{}]*\}", template))
    assert Template(template).matches(uri) is bool(re.fullmatch(pattern, uri, re.DOTALL))
