"""What the wordings of `polyplex lint` change for search: found by the tools' own words alone, or by given queries too.

    just eval lint --data DIR [--set livemcp_agentq] [--top 20] [--json]

Overrides for the most confused tools are made from the tools' own texts; of given queries, only which tool they mean is
used, and only to find confused tools. Rows with `half` find with one half of the queries and measure with the other.
Other sets over the same tools are measured with the same overrides. `--words FILE` measures a fragment of a
configuration instead.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from eval.datasets import SETS, DataSet, load
from eval.metrics import NAMES, Scores, evaluate
from polyplex.catalog.lint.confusion import confused, findings
from polyplex.catalog.lint.facts import Server, read_server
from polyplex.catalog.lint.findings import overrides
from polyplex.catalog.lint.judge import judged, measure, reworded
from polyplex.catalog.lint.queries import Query
from polyplex.catalog.search.index import SearchIndex
from polyplex.embed.choice import open_embedder
from polyplex.mux.entries import Entry

TOP: Final = 20
Json = dict[str, Any]


def servers_of(data: DataSet) -> list[Server]:
    """The tools of a set as servers offer them; public names are the ids of the set."""
    texts: dict[str, str] = {}
    lists: dict[str, list[Entry]] = {}
    for tool in data.tools:
        server = tool.get("server") or ""
        texts[server] = tool.get("server_description") or ""
        raw = {"name": tool["id"], "inputSchema": tool.get("input_schema") or {"type": "object"}}
        raw |= {"description": tool["description"]} if tool.get("description") else {}
        lists.setdefault(server, []).append(Entry(server, tool["name"], tool["id"], msgspec.json.encode(raw)))
    return [read_server(name, {"tools": own}, instructions=texts[name]) for name, own in lists.items()]


def given_queries(data: DataSet) -> list[Query]:
    """The queries of a set as they are given to lint."""
    return [Query(query.text, frozenset[str]().union(*query.slots)) for query in data.queries]


class Trial:
    """One index, the servers as they are, and the sets over their tools."""

    def __init__(self, sets: Sequence[DataSet]) -> None:
        self.sets = sets
        self.servers = servers_of(sets[0])
        self.index = SearchIndex(open_embedder("static"))

    def fragment(self, queries: Sequence[Query], top: int) -> Json:
        """The overrides for the most confused tools."""
        texts = {server.name: server.instructions for server in self.servers}
        sizes = {server.name: len(server.tools) for server in self.servers}
        worst = confused(self.servers, self.index, queries)[:top]
        return overrides(findings(worst, texts, sizes))

    def row(self, name: str, fragment: Json, sets: Sequence[DataSet] | None = None) -> Json:
        """The measures of all sets with these overrides."""
        changed = reworded(self.servers, fragment)
        missed = measure(self.index, self.servers, changed).after
        self.index.update(tool.document for server in changed for tool in server.tools)
        scores = {data.name: evaluate(data, self.rank) for data in (self.sets if sets is None else sets)}
        options = fragment.get("polyplex", {}).get("servers", {}).values()
        return {"name": name, "tools": sum(len(each["tools"]) for each in options), "missed": missed, "scores": scores}

    def rank(self, query: str, k: int) -> list[str]:
        """The ids that a query finds, best first."""
        return [hit.key for hit in self.index.search(query, k).hits]


def halves(data: DataSet) -> list[tuple[DataSet, DataSet]]:
    """A set cut in two, each half once to find with and once to measure with."""
    even, odd = (msgspec.structs.replace(data, queries=data.queries[start::2]) for start in (0, 1))
    return [(even, odd), (odd, even)]


def rows(trial: Trial, top: int) -> list[Json]:
    """Before, and after each way to find what to reword."""
    main = trial.sets[0]
    found = [
        trial.row("as they are", {}),
        trial.row(f"{top} most confused", trial.fragment((), top)),
        trial.row(f"{top}, given queries too", trial.fragment(given_queries(main), top)),
    ]
    for number, (half, rest) in enumerate(halves(main), 1):
        found.append(trial.row(f"half {number} as it is", {}, [rest]))
        found.append(trial.row(f"half {number} by the other", trial.fragment(given_queries(half), top), [rest]))
    everything = overrides(judged(trial.servers))
    found.append(trial.row("all rules but confusion", everything))
    return found


def shown(found: Sequence[Json]) -> str:
    """The rows as a table."""
    lines: list[str] = []
    for row in found:
        scores: dict[str, Scores] = row["scores"]
        measures = "   ".join(
            f"{name} " + " ".join(f"{measure} {score[measure]:.3f}" for measure in NAMES)
            for name, score in scores.items()
        )
        lines.append(f"{row['name']:<26} tools {row['tools']:>3}  own words missed {row['missed']:.1%}   {measures}")
    return "\n".join(lines)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="What the wordings of polyplex lint change for search.")
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--set", default="livemcp_agentq", choices=SETS, help="the set whose queries are given")
    parser.add_argument("--top", type=int, default=TOP, help="how many of the most confused tools get other words")
    parser.add_argument("--words", type=Path, help="measure this fragment of a configuration instead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    main_set = load(options.data, options.set)
    if main_set is None:
        parser.error(f"{options.data} has no set {options.set}")
    others = [data for name in SETS if name != options.set and (data := load(options.data, name)) is not None]
    same = [data for data in others if {tool["id"] for tool in data.tools} == {tool["id"] for tool in main_set.tools}]
    trial = Trial([main_set, *same])
    if options.words is None:
        found = rows(trial, options.top)
    else:
        words = json.loads(options.words.read_text(encoding="utf-8"))
        found = [trial.row("as they are", {}), trial.row(options.words.name, words)]
    sys.stdout.write(f"{json.dumps(found) if options.json else shown(found)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
