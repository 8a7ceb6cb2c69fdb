"""Variables in strings, and in every string of a tree."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.config.expand import UnresolvedError, Variables, expand, expand_tree
from polyplex.config.jsonc import Document
from polyplex.config.source import Source
from polyplex.errors import ConfigError

ENVIRON = {"A": "one", "EMPTY": "", "NESTED": "${A}", "workspaceFolder": "shadowed"}
VARIABLES = Variables.of(ENVIRON, Path("/work/shop"), Path("/home/me"))


def nowhere() -> Source:
    return Source(None, Path("/work/shop"), Document(None))


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain $A {A} $", "plain $A {A} $"),
        ("${A}", "one"),
        ("<${A}${A}>", "<oneone>"),
        ("${env:A}", "one"),
        ("${EMPTY}", ""),
        ("${A:-two}", "one"),
        ("${B:-two}", "two"),
        ("${B:-}", ""),
        ("${EMPTY:-two}", "two"),
        ("${env:B:-a:-b}", "a:-b"),
        ("${B:-two\nlines}", "two\nlines"),
        ("${NESTED}", "${A}"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${A}${A}", "${A}one"),
        ("${workspaceFolder}/x", "/work/shop/x"),
        ("${workspaceFolderBasename}", "shop"),
        ("${userHome}${pathSeparator}x", "/home/me/x"),
    ],
)
def test_references_are_replaced(text: str, expanded: str) -> None:
    assert expand(text, VARIABLES) == expanded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${MISSING}", "the environment variable MISSING is not set"),
        ("${env:MISSING}", "the environment variable MISSING is not set"),
        ("${input:key}", "is asked for by VS Code"),
        ("${config:editor.x}", "${config...}"),
        ("${A.b}", "is not a variable"),
        ("${}", "is not a variable"),
        ("${A", "${ without }"),
        ("${A:-${B}}", "${ inside ${"),
        ("${A {", "${ inside ${"),
    ],
)
def test_what_cannot_be_replaced_is_named(text: str, words: str) -> None:
    with pytest.raises(UnresolvedError) as caught:
        expand(text, VARIABLES)
    assert words in str(caught.value)


def test_a_malformed_default_is_not_shown() -> None:
    with pytest.raises(UnresolvedError) as caught:
        expand("${A B:-hunter2}", VARIABLES)
    assert "hunter2" not in str(caught.value)


@given(st.text().filter(lambda text: "${" not in text))
def test_text_without_a_reference_stays(text: str) -> None:
    assert expand(text, VARIABLES) == text


@given(st.text())
def test_every_text_can_be_escaped(text: str) -> None:
    assume_plain = text.replace("$", "")
    escaped = assume_plain.replace("{", "$${")
    assert expand(escaped, VARIABLES) == assume_plain.replace("{", "${")


@given(st.text(alphabet="${}:-AB envinput", max_size=30))
def test_any_text_expands_or_is_refused(text: str) -> None:
    try:
        result = expand(text, VARIABLES)
    except UnresolvedError:
        assert "${" in text
    else:
        assert isinstance(result, str)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_values_are_inserted_verbatim(value: str) -> None:
    assert expand("<${V}>", Variables({"V": value}, {})) == f"<{value}>"


def test_every_string_of_a_tree_is_expanded_but_no_key() -> None:
    source = nowhere()
    tree = {"${A}": ["${A}", 1, None, {"x": "${B:-b}", "y": "plain"}], "t": ("${A}",)}
    assert expand_tree(tree, ("root",), VARIABLES, source) == {
        "${A}": ["one", 1, None, {"x": "b", "y": "plain"}],
        "t": ["one"],
    }
    assert source.expanded == {("root", "${A}", 0), ("root", "${A}", 3, "x"), ("root", "t", 0)}


def test_an_error_in_a_tree_names_the_key() -> None:
    with pytest.raises(ConfigError, match=r"servers\.a\.args\[1\]: the environment variable MISSING"):
        expand_tree({"args": ["x", "${MISSING}"]}, ("servers", "a"), VARIABLES, nowhere())


def test_a_lenient_expansion_leaves_what_is_not_set() -> None:
    tree = ["${MISSING}", "${A}"]
    assert expand_tree(tree, (), VARIABLES, nowhere(), strict=False) == ["${MISSING}", "one"]


def test_a_tree_that_contains_itself_is_refused() -> None:
    tree: list[object] = []
    tree.append(tree)
    with pytest.raises(ConfigError, match="nested deeper"):
        expand_tree(tree, (), VARIABLES, nowhere())
