import threading
from pathlib import Path

import msgspec
import pytest

from polyplex.catalog.search import Document, Kind, Parameter
from polyplex.catalog.search.index import SearchIndex, open_index
from polyplex.config.model import SearchOptions
from polyplex.embed.choice import open_embedder


def tool(server: str, name: str, description: str, *parameters: str, kind: Kind = "tool") -> Document:
    return Document(f"{server}__{name}", kind, server, name, "", description, tuple(map(Parameter, parameters)))


TOOLS = [
    tool("mail", "send_email", "Sends an email to an address.", "recipient", "subject"),
    tool("mail", "list_inbox", "Lists the messages in the inbox.", "limit"),
    tool("weather", "get_forecast", "Weather forecast for a city.", "city", "days"),
    tool("files", "read_file", "Read the contents of a file.", "path"),
    tool("disk", "read_file", "Read the contents of a file on the disk.", "path"),
    tool("files", "delete_file", "Remove a file for good.", "path"),
    tool("stocks", "get_quote", "Price of a share on the stock exchange.", "ticker"),
    tool("calendar", "create_event", "Put an event into the calendar.", "title", "start"),
]


@pytest.fixture
def index() -> SearchIndex:
    found = SearchIndex(open_embedder("static"))
    found.update(TOOLS)
    return found


def keys(index: SearchIndex, query: str, k: int = 8, **options: object) -> list[str]:
    return [hit.key for hit in index.search(query, k, **options).hits]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("will it rain in Paris tomorrow", "weather__get_forecast"),
        ("write a mail to my colleague", "mail__send_email"),
        ("how much is an Apple share", "stocks__get_quote"),
        ("erase a document", "files__delete_file"),
        ("schedule an appointment", "calendar__create_event"),
        ("disk read-file", "disk__read_file"),
        ("filesReadFile", "files__read_file"),
        ("get_forcast", "weather__get_forecast"),
    ],
)
def test_the_tool_that_is_meant_comes_first(index: SearchIndex, query: str, best: str) -> None:
    assert keys(index, query)[0] == best


def test_hits_are_ordered_scored_and_explained(index: SearchIndex) -> None:
    found = index.search("read a file", 3)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert found.confident
    assert {"words", "vectors"} <= found.hits[0].parts.keys()
    assert index.search("files__read_file").hits[0].parts["name"] == 1


@pytest.mark.parametrize(
    "query", ["", "   ", "?!", "the of and", "\x00", "\ud800", "🙂" * 500, "a" * 100_000, "x " * 50_000]
)
def test_a_query_without_meaning_finds_nothing_for_certain(index: SearchIndex, query: str) -> None:
    assert not index.search(query).confident


def test_a_foreign_query_is_known_to_fit_nothing(index: SearchIndex) -> None:
    assert not index.search("refund a customer's card payment").confident
    assert index.search("delete a file").confident


@pytest.mark.parametrize("k", [0, -1])
def test_no_hits_are_given_where_none_are_wanted(index: SearchIndex, k: int) -> None:
    assert index.search("read a file", k).hits == ()


def test_no_more_hits_than_documents(index: SearchIndex) -> None:
    assert len(index.search("read a file", 1_000).hits) <= len(TOOLS)
    assert SearchIndex().search("anything").hits == ()


def test_filters_come_before_ranking(index: SearchIndex) -> None:
    assert set(keys(index, "read a file", server="disk")) == {"disk__read_file"}
    assert keys(index, "read a file", server="nobody") == []
    mail = {"mail__send_email", "mail__list_inbox", "unknown__tool"}
    assert set(keys(index, "read a file", 2, allowed=mail)) <= mail
    assert set(keys(index, "files__read_file", allowed=mail)) <= mail
    assert keys(index, "read a file", allowed=lambda key: key.startswith("disk")) == ["disk__read_file"]
    assert keys(index, "read a file", allowed=frozenset()) == []
    assert set(keys(index, "read", server="files", allowed={"disk__read_file", "files__delete_file"})) <= {
        "files__delete_file"
    }


def test_what_a_caller_may_not_see_changes_nothing_for_him(index: SearchIndex) -> None:
    mine = {document.key for document in TOOLS[:4]}
    alone = SearchIndex(open_embedder("static"))
    alone.update(TOOLS[:4])
    for query in ("read a file", "send a message", "files__delete_file", "stock price"):
        assert index.search(query, allowed=mine) == alone.search(query)


def test_kinds_are_searched_by_themselves(index: SearchIndex) -> None:
    index.update([*TOOLS, tool("docs", "greet", "Greets somebody.", "who", kind="prompt")])
    assert keys(index, "greet somebody", kind="prompt") == ["docs__greet"]
    assert "docs__greet" not in keys(index, "greet somebody")
    assert keys(index, "greet somebody", kind="resource") == []
    assert len(index) == len(TOOLS) + 1


def test_an_update_takes_in_what_is_new_changed_and_gone(index: SearchIndex) -> None:
    changed = tool("mail", "send_email", "Plays a song on the loudspeaker.")
    index.update([changed, *TOOLS[2:], tool("car", "honk", "Sounds the horn of the car.")])
    assert keys(index, "play a song")[0] == "mail__send_email"
    assert keys(index, "sound the horn")[0] == "car__honk"
    assert "mail__list_inbox" not in keys(index, "mail__list_inbox messages in the inbox")
    index.update([])
    assert len(index) == 0
    assert keys(index, "read a file") == []


def test_what_has_not_changed_is_not_read_again() -> None:
    read: list[int] = []

    class Watching:
        name, dimensions = "watching", 256

        def embed(self, texts: list[str]):
            read.append(len(texts))
            return open_embedder("static").embed(texts)

    index = SearchIndex(Watching())  # pyright: ignore[reportArgumentType]
    index.update(TOOLS)
    read.clear()
    index.update(list(reversed(TOOLS)))
    assert read == []
    index.update([*TOOLS, tool("car", "honk", "Sounds the horn.")])
    assert sum(read) == 2


def test_of_two_documents_with_one_key_the_later_counts() -> None:
    index = SearchIndex()
    index.update([tool("a", "x", "Plays songs."), tool("a", "x", "Reads files.")])
    assert len(index) == 1
    assert keys(index, "reads files") == ["a__x"]
    assert keys(index, "plays songs") == []


def test_stuffed_descriptions_gain_nothing(index: SearchIndex) -> None:
    """Words of every query, over and over, do not bring a tool before those that are for it."""
    queries = ["send an email", "weather forecast for a city", "read a file", "price of a share", "delete a file"]
    honest = {query: keys(index, query)[0] for query in queries}
    everything = " ".join(queries)
    for bait in (
        everything,
        everything * 40,
        ". ".join(queries),
        "email weather file share price delete read send " * 30,
    ):
        index.update([*TOOLS, tool("spam", "do_it", f"The best tool. {bait}"), tool("spam", "try", bait)])
        for query in queries:
            assert keys(index, query)[0] == honest[query], bait[:40]


def test_saying_it_again_does_not_help() -> None:
    index = SearchIndex(open_embedder("static"))
    text = "Weather forecast for a city."
    index.update([*TOOLS, tool("other", "forecast_tool", text), tool("loud", "forecast_tool", f"{text} " * 50)])
    found = keys(index, "weather forecast for a city")
    assert found.index("other__forecast_tool") < found.index("loud__forecast_tool")


def test_it_is_searched_while_it_is_updated() -> None:
    index = SearchIndex(open_embedder("static"))
    index.update(TOOLS)
    many = [*TOOLS, *(tool(f"s{i}", f"tool_{i}", f"Does the thing number {i} with care.") for i in range(1_500))]
    done = threading.Event()

    def churn() -> None:
        for _ in range(2):
            index.update(many)
            index.update(TOOLS)
        done.set()

    thread = threading.Thread(target=churn)
    thread.start()
    while not done.is_set():
        assert keys(index, "files__read_file")[0] == "files__read_file"
    thread.join()
    assert len(index) == len(TOOLS)


def test_steps_of_an_update_are_small_and_come_to_the_same(index: SearchIndex) -> None:
    other = SearchIndex(open_embedder("static"))
    many = [*TOOLS, *(tool("s", f"tool_{i}", f"Number {i}.") for i in range(700))]
    steps = list(other.updating(many))
    assert steps[-1] == len(many)
    assert len(steps) > 5
    index.update(many)
    assert other.search("read a file") == index.search("read a file")


@pytest.mark.parametrize("embedder", ["none", "static", "minilm"])
def test_the_configured_embedder_is_opened(embedder: str, tmp_path: Path) -> None:
    index = open_index(msgspec.convert({"embedder": embedder}, SearchOptions), tmp_path)
    index.update(TOOLS)
    hit = index.search("read the contents of a file").hits[0]
    assert hit.key in {"files__read_file", "disk__read_file"}
    assert ("model" in hit.parts, "vectors" in hit.parts) == (embedder == "minilm", embedder != "none")
    assert (tmp_path / "vectors.db").exists() == (embedder == "minilm")
