"""Data sets of tool search: a folder each, with `tools.jsonl` and `queries.jsonl`.

A tool has `id`, `server`, `name`, `description`, `input_schema` and perhaps `server_description`. A query has `id`,
`text` and `relevant`, the ids of the tools it needs; `groups` are slots of alternatives, any of which will do. At most
`MAX_QUERIES` of a set are used, drawn with a fixed seed.
"""

import json
import random
from pathlib import Path
from typing import Any, Final

import msgspec

from polyplex.catalog.documents import schema_parameters
from polyplex.catalog.search import Document

SETS: Final = (
    "mcpproxy45",
    "livemcpbench",
    "livemcp_agentq",
    "agentdojo",
    "metatool",
    "stabletoolbench",
    "bfcl",
    "sealtools",
)
FIRST: Final = SETS[:5]
MAX_QUERIES: Final = 400
SEED: Final = 11


class Query(msgspec.Struct, frozen=True):
    """A query and the slots that its answer should fill."""

    text: str
    slots: tuple[frozenset[str], ...]


class DataSet(msgspec.Struct, frozen=True):
    """One set: its tools and the queries that are used of it."""

    name: str
    tools: tuple[dict[str, Any], ...]
    queries: tuple[Query, ...]

    def documents(self) -> list[Document]:
        """The tools as the index takes them; their ids are the keys."""
        return [document(tool) for tool in self.tools]


def load(folder: Path, name: str) -> DataSet | None:
    """A set of a folder; None where it is not there."""
    tools, queries = folder / name / "tools.jsonl", folder / name / "queries.jsonl"
    if not (tools.is_file() and queries.is_file()):
        return None
    asked = [query(record) for record in records(queries)]
    if len(asked) > MAX_QUERIES:
        asked = random.Random(SEED).sample(asked, MAX_QUERIES)
    return DataSet(name, tuple(records(tools)), tuple(asked))


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def query(record: dict[str, Any]) -> Query:
    """A query of the file; without `groups` each relevant tool is a slot of its own."""
    groups = record.get("groups") or [[each] for each in record["relevant"]]
    return Query(record["text"], tuple(frozenset(group) for group in groups))


def document(tool: dict[str, Any]) -> Document:
    """A tool of the file as a document."""
    return Document(
        key=tool["id"],
        kind="tool",
        server=tool.get("server") or "",
        name=tool["name"],
        description=tool.get("description") or "",
        parameters=schema_parameters(tool.get("input_schema")),
        server_text=tool.get("server_description") or "",
    )
