"""Which tools fit a query: by its words in names and descriptions, rare words counting more."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NAME_WEIGHT: Final = 3.0
PREFIX_SHARE: Final = 0.5
LEAST_PREFIX: Final = 3


def words(text: str) -> list[str]:
    """The words of a text in lower case; `read_file` and `readFile` are two."""
    return [word.lower() for word in _WORD.findall(_HUMP.sub(" ", text))]


def rank(query: str, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tools that have a word of the query, best first; equally good ones keep their order."""
    names = [words(f"{tool['name']} {tool.get('title') or ''}") for tool in tools]
    texts = [words(str(tool.get("description") or "")) for tool in tools]
    scores = [0.0] * len(tools)
    for word in dict.fromkeys(words(query)):
        matches = [
            NAME_WEIGHT * _match(word, name) + _match(word, text) for name, text in zip(names, texts, strict=True)
        ]
        found = sum(match > 0 for match in matches)
        rarity = math.log(1 + len(tools) / found) if found else 0.0
        scores = [score + match * rarity for score, match in zip(scores, matches, strict=True)]
    order = sorted((index for index, score in enumerate(scores) if score > 0), key=lambda index: -scores[index])
    return [tools[index] for index in order]


def _match(word: str, others: list[str]) -> float:
    """1 for the word itself, less for a word that begins alike."""
    if word in others:
        return 1.0
    alike = any(_begins_alike(word, other) for other in others)
    return PREFIX_SHARE if alike else 0.0


def _begins_alike(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) >= LEAST_PREFIX and longer.startswith(shorter)
