"""Whether anything fits a query at all."""

from polyplex.catalog.search.postings import Floats


def is_confident(words: Floats, static: Floats | None = None, model: Floats | None = None) -> bool:
    """Whether the best document fits."""
    return bool(words.max() > 0)
