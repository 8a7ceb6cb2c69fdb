"""Data sets of tool search: a folder each, with `tools.jsonl` and `queries.jsonl`.

A tool has `id`, `server`, `name`, `description`, `input_schema` and perhaps `server_description`. A query has `id`,
`text` and `relevant`, the ids of the tools it needs; `groups` are slots of alternatives, any of which will do. At most
`MAX_QUERIES` of a set are used, drawn with a fixed seed. A set may lie in the folder itself, or deeper in it. What a
query asks of tools that the set does not have cannot be found by anyone: such slots do not count, nor queries that
have no other.
"""

import json
import random
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, cast

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
    """A set of a folder; None where it is not there, or nothing can be asked of it. Raises `ValueError`."""
    place = find(folder, name)
    if place is None:
        return None
    tools = {tool["id"]: tool for tool in map(as_tool, records(place / "tools.jsonl"))}
    queries = [query(record, tools) for record in records(place / "queries.jsonl")]
    asked = [each for each in queries if each.slots]
    if len(asked) > MAX_QUERIES:
        asked = random.Random(SEED).sample(asked, MAX_QUERIES)
    return DataSet(name, tuple(tools.values()), tuple(asked)) if asked else None


def find(folder: Path, name: str) -> Path | None:
    """Where a set lies: in `folder/name`, in a folder of this name below, or in the folder that has it itself."""
    places = [folder / name, *sorted(folder.glob(f"**/{name}"))]
    if folder.resolve().name == name:
        places.append(folder)
    return next((each for each in places if _is_set(each)), None)


def _is_set(place: Path) -> bool:
    return all((place / each).is_file() for each in ("tools.jsonl", "queries.jsonl"))


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSON Lines file. Raises `ValueError` for one that is no object."""
    found: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is no JSON: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{path}, line {number} is no object")
        found.append(cast("dict[str, Any]", record))
    return found


def as_tool(record: dict[str, Any]) -> dict[str, Any]:
    """A tool of the file with an id and a name: each stands in for the other."""
    key = record.get("id") or record.get("name")
    if not isinstance(key, str):
        raise ValueError(f"a tool has neither id nor name: {json.dumps(record)[:80]}")
    return record | {"id": key, "name": record.get("name") or key}


def query(record: dict[str, Any], tools: Collection[str]) -> Query:
    """A query of the file; without `groups` each relevant tool is a slot of its own."""
    groups = record.get("groups") or [[each] for each in record.get("relevant") or ()]
    slots = (frozenset(key for key in group if key in tools) for group in groups)
    return Query(record.get("text") or "", tuple(slot for slot in slots if slot))


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
