"""Words of names, texts and queries, as the index compares them."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

STOP_WORDS: Final = frozenset(
    "a about after again all also am an and any are as at be because been before being both but by can could did do does"
    " doing each for from further had has have having he her here hers him his how however i if in into is it its itself"
    " just let like me more most my myself need no nor not now of off on once one only or other our ours out over own"
    " please same she should so some such than that the their theirs them then there these they this those through to"
    " too under until up us very via want wants was we were what when where whether which while who whom why will with"
    " would you your yours d ll m re s t ve etc eg ie".split()
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
MAX_WORD: Final = 40


def split(text: str) -> list[str]:
    """The words of a text in lower case: `readFile`, `read_file` and `READ-FILE` are two; CJK runs become bigrams."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for word in _WORD.findall(_HUMP.sub(" ", text)):
        lower = word.casefold()
        if not lower.isascii() and _CJK.search(lower):
            found += _with_bigrams(lower)
        else:
            found.append(lower[:MAX_WORD])
    return found


def terms(text: str) -> list[str]:
    """What the index keeps of a text: stems of its words, without stop words and single letters."""
    return [
        stem(word)
        for word in split(text)
        if word not in STOP_WORDS and (len(word) > 1 or not word.isascii() or word.isdigit())
    ]


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A word without its usual English endings; light, so that unlike words stay apart."""
    if not word.isascii() or len(word) < 4:
        return word
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            word = _undoubled(word[: -len(ending)])
            break
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 6 and word.endswith("ation"):
        return word[:-3]
    if len(word) > 5 and word.endswith("ion"):
        return word[:-3]
    if len(word) > 5 and word.endswith("er"):
        return word[:-2]
    return word


def _undoubled(word: str) -> str:
    return word[:-1] if len(word) > 2 and word[-1] == word[-2] and word[-1] not in "ls" else word


def _with_bigrams(word: str) -> list[str]:
    found: list[str] = []
    end = 0
    for match in _CJK.finditer(word):
        if match.start() > end:
            found.append(word[end : match.start()][:MAX_WORD])
        run = match.group()
        found += [run[index : index + 2] for index in range(max(1, len(run) - 1))]
        end = match.end()
    if end < len(word):
        found.append(word[end:][:MAX_WORD])
    return found
