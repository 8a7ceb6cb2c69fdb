"""Whether anything fits a query at all.

Three signs are added: how much of the query's rare words the best document has, against all that any could have, how
close the closest document is, and, against it, how many of the query's words no document has. None says enough by
itself: a foreign query shares verbs with many tools, and a query in other words than the tool's shares none.
"""

from typing import Final

CLOSENESS: Final = 0.9
MISSING: Final = 0.4
MISSING_WITH_MODEL: Final = 0.2  # a model of sentences knows other words for the same thing
ENOUGH: Final = 0.62
ENOUGH_WITH_MODEL: Final = 0.62
ENOUGH_WORDS: Final = 0.22  # where there are no vectors


def is_confident(coverage: float, missing: float, static: float | None = None, model: float | None = None) -> bool:
    """Whether the best document fits, by its coverage of the query's words and the greatest closeness of any.

    `missing` is the share of the query's words that no document has.
    """
    if static is None:
        return coverage >= ENOUGH_WORDS
    if model is None:
        return coverage + CLOSENESS * static - MISSING * missing >= ENOUGH
    return coverage + CLOSENESS * (static + model) / 2 - MISSING_WITH_MODEL * missing >= ENOUGH_WITH_MODEL
