from polyplex.catalog.search.confidence import is_confident


def test_words_alone_closeness_alone_or_both_may_be_enough() -> None:
    assert is_confident(0.8, 0, 0.0)
    assert is_confident(0.0, 0, 0.8)
    assert is_confident(0.3, 0, 0.4)
    assert not is_confident(0.1, 0, 0.2)
    assert is_confident(0.4, 0, 0.3, 0.5)
    assert not is_confident(0.0, 0, 0.3, 0.5)


def test_words_that_no_document_has_speak_against_it() -> None:
    assert is_confident(0.3, 0.0, 0.45)
    assert not is_confident(0.3, 0.5, 0.45)
    # Less where a model reads whole sentences.
    assert is_confident(0.3, 0.5, 0.45, 0.5)
    assert not is_confident(0.2, 1.0, 0.45, 0.5)


def test_without_vectors_the_words_decide() -> None:
    assert is_confident(0.5, 0.5)
    assert not is_confident(0.1, 0.0)
