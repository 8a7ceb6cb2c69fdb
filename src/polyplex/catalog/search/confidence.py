"""Whether anything fits a query at all.

Two signs are added: how much of the query's rare words the best document has, against all that any could have, and how
close the closest document is. Neither says enough by itself: a foreign query shares verbs with many tools, and a query
in other words than the tool's shares none.
"""

from typing import Final

CLOSENESS: Final = 0.9
ENOUGH: Final = 0.57
ENOUGH_WITH_MODEL: Final = 0.62  # a model of sentences puts all texts nearer to each other
ENOUGH_WORDS: Final = 0.22  # where there are no vectors


def is_confident(coverage: float, static: float | None = None, model: float | None = None) -> bool:
    """Whether the best document fits, by its coverage of the query's words and the greatest closeness of any."""
    if static is None:
        return coverage >= ENOUGH_WORDS
    if model is None:
        return coverage + CLOSENESS * static >= ENOUGH
    return coverage + CLOSENESS * (static + model) / 2 >= ENOUGH_WITH_MODEL
