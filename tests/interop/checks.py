"""What is asked of each server through polyplex, and what a right answer holds. One table a primitive."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.interop.clients.interface import Json, Kind
from tests.interop.stage import COMMIT, FILE_TEXT, Stage

EVERYTHING = ("everything", "everything-http", "everything-sse")
OWN = ("python-sdk", "fastmcp", "typescript-sdk")

# The servers that have entries of a kind, told by their part of public names and URIs.
OFFERING: dict[Kind, frozenset[str]] = {
    "tools": frozenset({*EVERYTHING, *OWN, "files", "graph", "thinking", "git", "time", "fetch", "sqlite"}),
    "resources": frozenset({*EVERYTHING, *OWN, "sqlite", "graph"}),
    "resourceTemplates": frozenset({*EVERYTHING, *OWN}),
    "prompts": frozenset({*EVERYTHING, *OWN, "fetch", "sqlite"}),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A call of a tool of `server`, and a text that a right answer holds. `key` is unique to the asking client."""

    server: str
    tool: str
    arguments: Callable[[Stage, str], Json]
    holds: Callable[[Stage, str], str]

    @property
    def name(self) -> str:
        """The public name of the tool."""
        return f"{self.server}__{self.tool}"


def _echo(server: str) -> Question:
    return Question(server, "echo", lambda _, key: {"message": f"from {key}"}, lambda _, key: f"Echo: from {key}")


def _add(server: str) -> Question:
    return Question(server, "add", lambda *_: {"a": 19, "b": 23}, lambda *_: "42")


def _entity(_: Stage, key: str) -> Json:
    return {"entities": [{"name": key, "entityType": "client", "observations": ["asked"]}]}


def _thought(_: Stage, key: str) -> Json:
    return {"thought": key, "thoughtNumber": 3, "totalThoughts": 3, "nextThoughtNeeded": False}


def _noon(*_: object) -> Json:
    return {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


QUESTIONS = (
    *(_echo(server) for server in EVERYTHING),
    *(_add(server) for server in OWN),
    Question(
        "files",
        "read_text_file",
        lambda stage, _: {"path": str(stage.example / "files" / "hello.txt")},
        lambda *_: FILE_TEXT,
    ),
    Question("graph", "create_entities", _entity, lambda _, key: key),
    Question("graph", "read_graph", lambda *_: {}, lambda _, key: key),
    Question("thinking", "sequentialthinking", _thought, lambda *_: '"thoughtNumber": 3'),
    Question("git", "git_log", lambda stage, _: {"repo_path": str(stage.repository)}, lambda *_: COMMIT),
    Question("time", "convert_time", _noon, lambda *_: "+9.0h"),
    Question("fetch", "fetch", lambda stage, _: {"url": stage.page, "raw": True}, lambda *_: "says hello to fetch"),
    Question("sqlite", "read_query", lambda *_: {"query": "SELECT 6 * 7 AS answer"}, lambda *_: "42"),
)

# URI of a resource, or of one that a template makes, and a text in it.
RESOURCES = (
    *((f"{server}+demo://resource/static/document/architecture.md", "Everything") for server in EVERYTHING),
    *((f"{server}+demo://resource/dynamic/text/7", "Resource 7") for server in EVERYTHING),
    *((f"{server}+note://today", f"{server} note") for server in OWN),
    *((f"{server}+note://of/Ada", "note of Ada") for server in OWN),
    ("sqlite+memo://insights", "No business insights"),
)

# Name of a prompt, its arguments, and a text in it.
PROMPTS: tuple[tuple[str, dict[str, str], str], ...] = (
    *((f"{server}__simple-prompt", {}, "simple prompt") for server in EVERYTHING),
    *((f"{server}__args-prompt", {"city": "Kyoto"}, "weather in Kyoto") for server in EVERYTHING),
    *((f"{server}__greet", {"name": "Ada"}, f"Greet Ada from {server}") for server in OWN),
    ("sqlite__mcp-demo", {"topic": "sailing"}, "sailing"),
)

# What is completed, the name and the beginning of the argument, and the values expected.
COMPLETIONS: tuple[tuple[Json, str, str, list[str]], ...] = (
    *(
        ({"type": "ref/prompt", "name": f"{server}__completable-prompt"}, "department", "S", ["Sales", "Support"])
        for server in EVERYTHING
    ),
    *(
        (
            {"type": "ref/resource", "uri": f"{server}+demo://resource/dynamic/text/{{resourceId}}"},
            *("resourceId", "12", ["12"]),
        )
        for server in EVERYTHING
    ),
    ({"type": "ref/prompt", "name": "python-sdk__greet"}, "name", "A", ["Ada", "Alan"]),
    ({"type": "ref/resource", "uri": "python-sdk+note://of/{name}"}, "name", "G", ["Grace"]),
    ({"type": "ref/prompt", "name": "typescript-sdk__greet"}, "name", "A", ["Ada", "Alan"]),
)


def owner(kind: Kind, entry: Json) -> str:
    """The server that a public entry belongs to."""
    if kind in ("tools", "prompts"):
        return entry["name"].partition("__")[0]
    return (entry["uri"] if kind == "resources" else entry["uriTemplate"]).partition("+")[0]


def text_of(result: Json) -> str:
    """All text of a tool result, of a resource's contents or of a prompt."""
    blocks: list[Any] = [*result.get("content", []), *result.get("contents", [])]
    blocks += [message["content"] for message in result.get("messages", [])]
    return "\n".join(block.get("text") or json.dumps(block) for block in blocks)
