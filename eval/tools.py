"""How well tools are found: `just eval tools [--data DIR] [--tier static|minilm|none] [--peer] [--json]`.

Each set of `eval.datasets` that DIR has is measured by itself; "first five" and "all" are means over sets. Below are
what an index of 10,000 tools costs, and how often polyplex knows that nothing fits.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from eval.costs import measure
from eval.datasets import FIRST, SETS, DataSet, load, records
from eval.metrics import NAMES, Ranker, Scores, evaluate, mean
from eval.peer import fastmcp_ranker
from polyplex.catalog.search.index import SearchIndex, open_index
from polyplex.config.model import SearchOptions

ROOT: Final = Path(__file__).resolve().parents[1]
SLICE: Final = ROOT / "tests" / "data" / "toolsearch"
ABSTENTION: Final = SLICE / "abstention.jsonl"
TIERS: Final = ("static", "minilm", "none")


def ranker(index: SearchIndex) -> Ranker:
    """The index as the metrics ask it."""
    return lambda query, k: [hit.key for hit in index.search(query, k).hits]


def measure_sets(sets: Sequence[DataSet], make: Callable[[DataSet], Ranker]) -> dict[str, Scores]:
    """The scores of each set, and the means over sets."""
    found = {data.name: evaluate(data, make(data)) for data in sets}
    first = [found[name] for name in FIRST if name in found]
    return found | ({"first five": mean(first)} if first else {}) | {"all": mean(list(found.values()))}


def abstention(make: Callable[[], SearchIndex], tools: DataSet) -> dict[str, float]:
    """The share of right answers among queries that something fits, and among those that nothing does."""
    index = make()
    index.update(tools.documents())
    right: dict[bool, list[bool]] = {True: [], False: []}
    for record in records(ABSTENTION):
        right[record["fits"]].append(index.search(record["text"]).confident is record["fits"])
    return {"fits": sum(right[True]) / len(right[True]), "nothing fits": sum(right[False]) / len(right[False])}


def report(folder: Path, tier: str, *, peer: bool, costs: bool) -> dict[str, Any]:
    """All figures. Raises `FileNotFoundError` where the folder has none of the sets, `ValueError` for a broken one."""
    sets = [data for name in SETS if (data := load(folder, name)) is not None]
    if not sets:
        raise FileNotFoundError(f"{folder} has none of the sets {', '.join(SETS)}")

    def make() -> SearchIndex:
        return open_index(msgspec.convert({"embedder": tier}, SearchOptions))

    def ours(data: DataSet) -> Ranker:
        index = make()
        index.update(data.documents())
        return ranker(index)

    found: dict[str, Any] = {"tier": tier, "data": str(folder), "polyplex": measure_sets(sets, ours)}
    if peer:
        found["fastmcp"] = measure_sets(sets, lambda data: fastmcp_ranker(data.tools))
    live = load(folder, "livemcpbench") or load(SLICE, "livemcpbench")
    if live is not None:
        found["abstention"] = abstention(make, live)
    if costs:
        found["costs"] = msgspec.to_builtins(measure(sets, make))
    return found


def show(found: dict[str, Any]) -> None:
    """The figures as a table."""
    for who in ("polyplex", "fastmcp"):
        if who in found:
            print(
                f"\n{who + (' (' + found['tier'] + ')' if who == 'polyplex' else ''):20}", *(f"{n:>8}" for n in NAMES)
            )
            for name, scores in found[who].items():
                print(f"{name:20}", *(f"{scores[each]:8.3f}" for each in NAMES if scores))
    for name in ("abstention", "costs"):
        if name in found:
            print(f"\n{name}: " + ", ".join(f"{key} {_figure(value)}" for key, value in found[name].items()))


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="just eval tools", description=__doc__)
    parser.add_argument("--data", type=Path, default=SLICE)
    parser.add_argument("--tier", choices=TIERS, default="static")
    parser.add_argument("--peer", action="store_true", help="measure FastMCP's BM25 as well")
    parser.add_argument("--no-costs", action="store_true", help="leave out time and memory")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        found = report(options.data, options.tier, peer=options.peer, costs=not options.no_costs)
    except (OSError, ValueError) as error:
        print(f"just eval tools: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
