from polyplex.catalog.search import Document, Parameter
from polyplex.catalog.search.reading import MAX_CLAUSES, document_fields, full_text, read_query, short_text
from polyplex.catalog.search.words import terms

DOCUMENT = Document(
    key="files__readFile",
    kind="tool",
    server="files",
    name="readFile",
    title="Read file",
    description="Reads a file. It must exist.\nBinary ones are refused.",
    parameters=(Parameter("maxBytes", "How much to read", ("small", "large")),),
    server_text="A disk",
)


def test_fields_hold_the_terms_of_their_part() -> None:
    assert document_fields(DOCUMENT) == {
        "name": ["read", "fil"],
        "server": ["fil"],
        "summary": ["read", "fil"],
        "details": ["must", "exist", "binari", "one", "refus"],
        "parameter": ["max", "byt"],
        "parameter_text": ["much", "read"],
        "choices": ["small", "larg"],
        "server_text": ["disk"],
    }


def test_texts_for_vectors_have_names_as_words() -> None:
    assert short_text(DOCUMENT) == "files read file: Reads a file. It must exist. Binary ones are refused."
    assert full_text(DOCUMENT) == f"{short_text(DOCUMENT)} | max bytes How much to read"


def test_labels_of_lines_are_not_words_of_the_query() -> None:
    query = read_query("server: railway system\n\ntool: get station codes")
    assert query.sentence == "railway system. get station codes"
    assert set(query.terms) == set(terms("railway system get station codes"))
    assert query.clauses == ()


def test_a_single_line_with_a_colon_is_not_labelled() -> None:
    assert "not" not in read_query("error: disk full").terms
    assert set(read_query("error: disk full").terms) == {"error", "disk", "full"}


def test_several_wishes_are_several_clauses() -> None:
    assert read_query("Find a flight to Rome, and then book a hotel. Also send me the weather forecast.").clauses == (
        "find a flight to rome",
        "book a hotel",
        "send me the weather forecast",
    )
    assert read_query("read a file").clauses == ()


def test_what_is_read_of_a_query_is_bounded() -> None:
    query = read_query(". ".join(f"wish number{i} thing{i}" for i in range(5_000)))
    assert len(query.clauses) == MAX_CLAUSES
    assert len(query.terms) <= 64
    assert len(query.text) <= 2_000


def test_a_repeated_word_counts_less_than_twice() -> None:
    weights = read_query("weather weather weather forecast").terms
    assert 1 == weights["forecast"] < weights["weath"] < 2
