"""What an index of many tools costs: CPU seconds to build, milliseconds for a query, megabytes to keep."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence

import msgspec

from eval.datasets import DataSet
from polyplex.catalog.search import Document
from polyplex.catalog.search.index import SearchIndex

TOOLS = 10_000
QUERIES_OF_EACH = 60
RUNS = 3


class Costs(msgspec.Struct, frozen=True):
    """Figures of one index. CPU times are of this process."""

    tools: int
    build_seconds: float
    query_p50_ms: float
    query_p95_ms: float
    memory_mb: float


def measure(sets: Sequence[DataSet], make: Callable[[], SearchIndex]) -> Costs:
    """Index the tools of all sets together, repeated under other names up to `TOOLS`, and ask some queries of each."""
    documents = _many(sets)
    queries = [query.text for data in sets for query in data.queries[:QUERIES_OF_EACH]]
    index = make()
    index.search("warm up")
    began = time.process_time()
    index.update(documents)
    built = time.process_time() - began
    times = sorted(_timed(index, query) for query in queries)
    del index
    return Costs(
        len(documents), built, times[len(times) // 2], times[int(0.95 * len(times))], _megabytes(documents, make)
    )


def _many(sets: Sequence[DataSet]) -> list[Document]:
    """The documents of all sets, each once; again under another server where there are too few."""
    found = {f"{data.name}:{each.key}": each for data in sets for each in data.documents()}
    once = list(found.items())
    for turn in range(1, 1 + TOOLS // max(1, len(once))):
        for key, each in once:
            if len(found) < TOOLS:
                found[f"{key}:{turn}"] = msgspec.structs.replace(each, server=f"{each.server}{turn}")
    return [msgspec.structs.replace(each, key=key) for key, each in list(found.items())[:TOOLS]]


def _timed(index: SearchIndex, query: str) -> float:
    """The shortest of some runs, since load on the machine makes CPU time longer as well.

    Blanks at the end make a query a new one: the index remembers the vectors of those that it was just asked.
    """
    times: list[int] = []
    for turn in range(RUNS):
        began = time.process_time_ns()
        index.search(query + " " * turn)
        times.append(time.process_time_ns() - began)
    return min(times) / 1e6


def _megabytes(documents: Sequence[Document], make: Callable[[], SearchIndex]) -> float:
    """What an index of its own keeps. Traced by itself, since tracing slows everything."""
    gc.collect()
    tracemalloc.start()
    index = make()
    index.update(documents)
    index.search("anything")
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del index
    return kept / 1e6
