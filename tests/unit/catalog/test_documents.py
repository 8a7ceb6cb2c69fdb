from typing import Any

import msgspec
import pytest

from polyplex.catalog.documents import MAX_DEPTH, MAX_PARAMETERS, document, schema_parameters
from polyplex.catalog.search import Document, Parameter
from polyplex.mux.entries import Entry, Naming, read_entry

NAMING = Naming("my server", "my-server", prefix=True)


def entry(member: str, fields: dict[str, Any]) -> Entry:
    found = read_entry(member, msgspec.json.encode(fields), NAMING)
    assert isinstance(found, Entry)
    return found


def test_a_tool_is_read_with_its_parameters() -> None:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "mode": {"enum": ["text", 1, None], "title": "Mode"},
            "more": {"type": "array", "items": {"type": "object", "properties": {"deep": {"description": "D"}}}},
            "either": {"anyOf": [{"properties": {"one": True}}, {"type": "null"}]},
        },
    }
    found = entry("tools", {"name": "read.file", "title": "Read", "description": "Reads.", "inputSchema": schema})
    assert document("tools", found, "A disk.") == Document(
        key=found.key,
        kind="tool",
        server="my server",
        name="read.file",
        title="Read",
        description="Reads.",
        parameters=(
            Parameter("path", "Where"),
            Parameter("mode", "Mode", ("text", "1", "None")),
            Parameter("more"),
            Parameter("either"),
            Parameter("deep", "D"),
            Parameter("one"),
        ),
        server_text="A disk.",
    )


def test_prompts_resources_and_templates_are_read() -> None:
    prompt = document(
        "prompts", entry("prompts", {"name": "greet", "arguments": [{"name": "who", "description": "W"}]})
    )
    resource = document("resources", entry("resources", {"uri": "file:///notes.txt", "name": "Notes"}))
    template = document(
        "resourceTemplates", entry("resourceTemplates", {"uriTemplate": "db://{table}", "name": "Rows"})
    )
    assert (prompt.kind, prompt.name, prompt.parameters) == ("prompt", "greet", (Parameter("who", "W"),))
    assert (resource.kind, resource.name, resource.description) == ("resource", "Notes", "file:///notes.txt")
    assert (template.kind, template.name, template.description) == ("template", "Rows", "db://{table}")
    assert resource.key.endswith("file:///notes.txt") or resource.key != ""


def test_the_title_of_the_annotations_will_do() -> None:
    found = entry("tools", {"name": "x", "inputSchema": {}, "annotations": {"title": "Better name"}})
    assert document("tools", found).title == "Better name"


@pytest.mark.parametrize(
    "raw",
    [b"", b"nonsense", b"[]", b"null", b'{"name": 5, "description": [], "inputSchema": 7, "annotations": "x"}',
     b'{"inputSchema": {"properties": {"a": 1, "b": {"enum": 3, "description": {}}, "c": {"anyOf": "x"}}}}',
     b'{"arguments": [1, null, {"name": []}]}', b'{"inputSchema": ' + b'{"items":' * 3000 + b"1" + b"}" * 3000 + b"}"],
)  # fmt: skip
def test_what_cannot_be_read_is_left_out(raw: bytes) -> None:
    for member in ("tools", "prompts", "resources", "resourceTemplates"):
        found = document(member, Entry("s", "local", "s__local", raw))
        assert (found.key, found.server) == ("s__local", "s")


def test_what_is_read_of_a_schema_is_bounded() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for level in range(50):
        deep = {"properties": {f"level{level}": deep}}
    assert len(schema_parameters(deep)) == MAX_DEPTH
    wide = {"properties": {f"p{i}": {"properties": {"x": {}}} for i in range(5_000)}}
    assert len(schema_parameters(wide)) == MAX_PARAMETERS


def test_the_digest_changes_with_every_word() -> None:
    one = Document("k", "tool", "s", "n", "t", "d", (Parameter("a", "b", ("c",)),), "x")
    others = [
        msgspec.structs.replace(one, **change)
        for change in (
            {"kind": "prompt"},
            {"server": "S"},
            {"name": "N"},
            {"title": "T"},
            {"description": "D"},
            {"parameters": (Parameter("a", "b", ("C",)),)},
            {"parameters": (Parameter("a", "bc"),)},
            {"parameters": ()},
            {"server_text": "X"},
        )
    ]
    assert len({each.digest() for each in [one, *others]}) == 1 + len(others)
    assert one.digest() == msgspec.structs.replace(one).digest()
