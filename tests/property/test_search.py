"""Whatever servers and users write: the index takes it, and one that grew is like one that was built at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from polyplex.catalog.search import Document, Parameter
from polyplex.catalog.search.index import SearchIndex
from polyplex.catalog.search.names import compact, edit_distance
from polyplex.catalog.search.reading import read_query
from polyplex.catalog.search.words import MAX_WORD, split, stem, terms
from polyplex.embed.choice import open_embedder
from polyplex.embed.wordpiece import basic_words

ANY = st.text(max_size=60)
WORDS = st.lists(
    st.sampled_from(
        ["read", "write", "file", "mail", "send", "weather", "forecast", "list", "get", "天气", "café", "x"]
    ),
    max_size=6,
)
TEXT = ANY | WORDS.map(" ".join)
DOCUMENTS = st.builds(
    Document,
    key=st.sampled_from([f"s__t{number}" for number in range(8)]),
    kind=st.just("tool"),
    server=st.sampled_from(["s", "other"]),
    name=TEXT,
    title=TEXT,
    description=TEXT,
    parameters=st.lists(st.builds(Parameter, name=TEXT, description=TEXT), max_size=2).map(tuple),
)


@given(st.lists(st.lists(DOCUMENTS, max_size=6), min_size=1, max_size=4), TEXT)
@settings(deadline=None)
def test_an_index_that_grew_and_shrank_is_one_that_was_built(lists: list[list[Document]], query: str) -> None:
    grown, built = SearchIndex(open_embedder("static")), SearchIndex(open_embedder("static"))
    for documents in lists:
        grown.update(documents)
    built.update(lists[-1])
    one, other = grown.search(query), built.search(query)
    assert len(grown) == len(built)
    assert one.confident == other.confident
    assert {hit.key: round(hit.score, 4) for hit in one.hits} == {hit.key: round(hit.score, 4) for hit in other.hits}


@given(st.lists(DOCUMENTS, min_size=1, max_size=8, unique_by=lambda each: each.key), TEXT, st.sets(st.integers(0, 7)))
@settings(deadline=None)
def test_only_what_is_allowed_is_found(documents: list[Document], query: str, numbers: set[int]) -> None:
    index = SearchIndex(open_embedder("static"))
    index.update(documents)
    allowed = {f"s__t{number}" for number in numbers}
    found = index.search(query, allowed=allowed, server="s")
    servers = {document.key: document.server for document in documents}
    assert all(hit.key in allowed and servers[hit.key] == "s" for hit in found.hits)


@given(st.lists(DOCUMENTS, min_size=1, max_size=8, unique_by=lambda each: each.key))
@settings(deadline=None)
def test_its_own_key_always_finds_a_document_first(documents: list[Document]) -> None:
    index = SearchIndex(open_embedder("static"))
    index.update(documents)
    for document in documents:
        assert index.search(document.key, 1).hits[0].score == 1
        same = [each for each in documents if compact(document.key) in (compact(each.key), compact(each.name))]
        assert document.key in {hit.key for hit in index.search(document.key, max(8, len(same))).hits}


@given(st.text())
def test_every_text_has_words_of_bounded_length_and_few_stems(text: str) -> None:
    words = split(text)
    assert all(0 < len(word) <= MAX_WORD and not any(letter.isspace() for letter in word) for word in words)
    assert len(terms(text)) <= len(words)
    assert all(stem(word) for word in words)
    assert all(not any(letter.isspace() for letter in word) for word in basic_words(text))
    assert read_query(text).breadth >= 0


@given(st.text(max_size=12), st.text(max_size=12), st.integers(0, 3))
def test_edits_are_the_same_both_ways(one: str, other: str, limit: int) -> None:
    distance = edit_distance(one, other, limit)
    assert distance == edit_distance(other, one, limit) <= limit + 1
    assert (distance == 0) == (one == other)
