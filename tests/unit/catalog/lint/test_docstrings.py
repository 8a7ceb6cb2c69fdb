from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.lint.docstrings import read_docstring

GOOGLE = """
    Find places near a point.

    More about it.

    Args:
        lat: Latitude
            in degrees
        radius (float, optional): Metres; one of: 5, 10
        other: not a parameter

    Returns:
        Places: a list
    """


def test_a_google_docstring_comes_apart() -> None:
    found = read_docstring(GOOGLE, ["lat", "radius", "Places"])
    assert found.summary == "Find places near a point.\n\n    More about it."
    assert found.parameters == {"lat": "Latitude in degrees", "radius": "Metres; one of: 5, 10 other: not a parameter"}
    assert list(found.sections) == ["returns"]


def test_sphinx_and_markdown_lists_come_apart() -> None:
    assert read_docstring("Do.\n:param x: the x\n:param int y: the y", ["x", "y"]).parameters == {
        "x": "the x",
        "y": "the y",
    }
    assert read_docstring("Do.\n\nParameters:\n- `x`: the x\n* **y** (int): the y", ["x", "y"]).parameters == {
        "x": "the x",
        "y": "the y",
    }


def test_a_plain_text_stays_whole() -> None:
    text = "Reads a file.\nx: is no section, since no heading stands before it"
    assert read_docstring(text, ["x"]).summary == text
    assert read_docstring("Note: mind the gap", []).sections == {"note": "mind the gap"}


def test_a_parameter_that_is_called_like_a_heading_is_a_parameter() -> None:
    assert read_docstring("Args:\n  input: what goes in", ["input"]).parameters == {"input": "what goes in"}


@given(st.text(alphabet="Args:\n abx-*()`,.", max_size=200), st.sets(st.sampled_from("abx")))
def test_any_text_comes_apart_and_speaks_of_known_parameters_only(text: str, names: set[str]) -> None:
    found = read_docstring(text, names)
    assert set(found.parameters) <= names
    assert all(value.strip() for value in found.parameters.values())
