"""Word pieces as BERT's uncased vocabulary has them: lower case without accents, longest piece first."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

MAX_WORD: Final = 100
_CACHED: Final = 1 << 14
_ASCII: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
# What the model saw as single words however they stand together.
_IDEOGRAPHS: Final = re.compile(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)


def read_vocabulary(text: str) -> dict[str, int]:
    """A vocabulary file, one piece in a line, as numbers by piece."""
    return {piece: number for number, piece in enumerate(text.splitlines())}


def basic_words(text: str) -> list[str]:
    """The words and punctuation marks of a text, as the model's own tokenizer cuts it."""
    if text.isascii():
        return _ASCII.findall(text.lower())
    text = _IDEOGRAPHS.sub(r" \1 ", "".join(_cleaned(text)))
    text = "".join(
        character for character in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(character) != "Mn"
    )
    found: list[str] = []
    for word in text.split():
        found += _at_punctuation(word)
    return found


class WordPieces:
    """A tokenizer over one vocabulary. `encode` gives the numbers of pieces; what is not in it becomes `[UNK]`."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self.unknown = vocabulary["[UNK]"]
        self.start = vocabulary["[CLS]"]
        self.end = vocabulary["[SEP]"]
        self.pieces = lru_cache(maxsize=_CACHED)(self._pieces)

    def encode(self, text: str, limit: int = 512) -> list[int]:
        """The pieces of a text, `limit` of them at most, without the marks of its start and end."""
        found: list[int] = []
        for word in basic_words(text[: 20 * limit]):
            found += self.pieces(word)
            if len(found) >= limit:
                return found[:limit]
        return found

    def _pieces(self, word: str) -> Sequence[int]:
        """The pieces of one word, the longest first; `[UNK]` alone where it cannot be put together."""
        if len(word) > MAX_WORD:
            return (self.unknown,)
        found: list[int] = []
        begin = 0
        while begin < len(word):
            end = len(word)
            while end > begin:
                number = self._vocabulary.get(word[begin:end] if begin == 0 else f"##{word[begin:end]}")
                if number is not None:
                    break
                end -= 1
            else:
                return (self.unknown,)
            found.append(number)
            begin = end
        return tuple(found)


def _cleaned(text: str) -> list[str]:
    """Without control characters, every kind of white space a blank."""
    found: list[str] = []
    for character in text:
        if character in "\t\n\r" or unicodedata.category(character) == "Zs":
            found.append(" ")
        elif character != "\ufffd" and unicodedata.category(character)[0] != "C":
            found.append(character)
    return found


def _at_punctuation(word: str) -> list[str]:
    found: list[str] = []
    current = ""
    for character in word:
        if _is_punctuation(character):
            found += [current, character] if current else [character]
            current = ""
        else:
            current += character
    return [*found, current] if current else found


def _is_punctuation(character: str) -> bool:
    point = ord(character)
    if point < 128:
        return 33 <= point <= 47 or 58 <= point <= 64 or 91 <= point <= 96 or 123 <= point <= 126
    return unicodedata.category(character)[0] == "P"
