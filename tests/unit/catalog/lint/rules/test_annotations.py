import pytest

from polyplex.catalog.lint.rules import annotations
from tests.unit.catalog.lint.offers import Json, raw_tool, server


@pytest.mark.parametrize(
    ("name", "text", "hints", "rules"),
    [
        ("delete_file", "Deletes", {"readOnlyHint": True}, {"annotation-contradicts"}),
        ("delete_file", "Deletes", {"destructiveHint": False}, {"annotation-contradicts"}),
        ("delete_file", "Deletes", {"destructiveHint": True}, set[str]()),
        ("create_file", "Creates", {"readOnlyHint": True}, {"annotation-contradicts"}),
        ("create_file", "Creates", {"destructiveHint": False}, set[str]()),
        ("create_query", "Builds a query", {"readOnlyHint": True}, set[str]()),
        ("order_status", "Shows an order", {"readOnlyHint": True}, set[str]()),
        ("order_food", "Orders food", {"readOnlyHint": True}, {"annotation-contradicts"}),
        ("read_file", "Reads", {"readOnlyHint": True, "destructiveHint": True}, {"annotation-pair"}),
        ("read_file", "Reads", {"readOnlyHint": False}, {"annotation-unlikely"}),
        ("read_file", "Reads", {"readOnlyHint": "yes"}, {"annotation-type"}),
        ("send_mail", "Sends", {"idempotentHint": True}, {"annotation-unlikely"}),
        ("create_folder", "Ensures that it exists", {"idempotentHint": True}, set[str]()),
        ("search_web", "Searches", {"openWorldHint": False}, {"annotation-unlikely"}),
        ("search_notes", "Searches", {"openWorldHint": False}, set[str]()),
    ],
)
def test_hints_are_compared_with_names(name: str, text: str, hints: Json, rules: set[str]) -> None:
    own = server(raw_tool(name, text, annotations=hints))
    assert {found.rule for rule in annotations.ALL for found in rule(own.tools[0], own)} == rules


def test_the_warning_goes_into_the_description_since_hints_cannot_be_overridden() -> None:
    own = server(raw_tool("delete_file", "Deletes one file of the folder.", annotations={"readOnlyHint": True}))
    (found,) = annotations.contradicts(own.tools[0], own)
    author, config = found.paste
    assert (author.path, author.value) == (("annotations", "readOnlyHint"), False)
    assert str(config.value).startswith("Deletes one file of the folder. Removes what it is given")


def test_missing_annotations_are_one_finding_for_the_server() -> None:
    own = server(raw_tool("list_files"), raw_tool("delete_file"), raw_tool("read", annotations={"readOnlyHint": True}))
    (found,) = annotations.missing(own)
    assert found.message == (
        "2 of 3 tools have no annotations: list_files only look; delete_file change something, by their names"
    )
    assert list(annotations.missing(server())) == []
