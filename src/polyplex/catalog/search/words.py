"""Words of names, texts and queries, as the index compares them."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

STOP_WORDS: Final = frozenset(
    """a about after again all also am an and any are as at be because been before being both but by can could d did do
    does doing each eg etc for from further had has have having he her here hers him his how however i ie if in into is
    it its itself just let like ll m me more most my myself need no nor not now of off on once one only or other our
    ours out over own please re s same she should so some such t than that the their theirs them then there these they
    this those through to too under until up us ve very via want wants was we were what when where whether which while
    who whom why will with would you your yours""".split()  # noqa: SIM905 (a list of words reads best as words)
)
MAX_WORD: Final = 40
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_VOWEL: Final = re.compile(r"[aeiouy]")
_NO_PLURALS: Final = frozenset(("alias", "atlas", "bias", "canvas", "lens", "news"))
_SPLIT_AT_MOST: Final = 20_000
# Longest first, with what stands in their place. An ending is taken off where enough of the word is left.
_ENDINGS: Final = (
    ("ification", "ify"),
    ("ization", "iz"),
    ("isation", "iz"),
    ("ational", "at"),
    ("ousness", "ous"),
    ("iveness", "iv"),
    ("fulness", "ful"),
    ("ability", "abl"),
    ("ation", "at"),
    ("ement", ""),
    ("ment", ""),
    ("ness", ""),
    ("able", ""),
    ("ible", ""),
    ("ance", ""),
    ("ence", ""),
    ("ally", "al"),
    ("tion", "t"),
    ("sion", "s"),
    ("ity", ""),
    ("ive", ""),
    ("ize", "iz"),
    ("ise", "iz"),
    ("ly", ""),
    ("er", ""),
    ("or", ""),
    ("al", ""),
    ("ic", ""),
    ("y", "i"),
)


def split(text: str) -> list[str]:
    """The words of a text in lower case: `readFile`, `read_file` and `READ-FILE` are two; CJK runs become bigrams."""
    text = text[:_SPLIT_AT_MOST]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for word in _WORD.findall(_HUMP.sub(" ", text)):
        lower = word.casefold()
        if lower.isascii():
            found.append(lower[:MAX_WORD])
        else:
            found += _foreign(lower)
    return found


def terms(text: str) -> list[str]:
    """What the index keeps of a text: stems of its words, without stop words and single letters."""
    return [stem(word) for word in split(text) if word not in STOP_WORDS and not _is_letter(word)]


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A word without the endings that English puts on it. Others than ASCII words stay as they are."""
    if len(word) < 4 or not word.isascii():
        return word
    word = _without_tense(_singular(word))
    for ending, instead in _ENDINGS:
        rest = len(word) - len(ending)
        if rest >= (3 if instead else 4) and word.endswith(ending):
            word = word[:rest] + instead
            break
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    return word


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii() and word.isalpha()


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in _NO_PLURALS:
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    """Without `ing` or `ed`, where what is left has a vowel: `string` and `bed` stay."""
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            rest = word[: -len(ending)]
            if not _VOWEL.search(rest):
                return word
            return rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
    return word


def _foreign(word: str) -> list[str]:
    """A word that is not ASCII: accents are dropped from Latin letters, CJK runs cut into bigrams."""
    found: list[str] = []
    end = 0
    for match in _CJK.finditer(word):
        if match.start() > end:
            found.append(_without_accents(word[end : match.start()])[:MAX_WORD])
        run = match.group()
        found += [run[index : index + 2] for index in range(max(1, len(run) - 1))]
        end = match.end()
    if end < len(word):
        found.append(_without_accents(word[end:])[:MAX_WORD])
    return [each for each in found if each]


def _without_accents(word: str) -> str:
    plain = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    return plain if plain.isascii() else word
