"""How many tokens a text is: an estimate for the hot path, and a real tokenizer for reports.

The estimate counts pairs of neighbouring kinds of characters (a letter before a space ends a word, a letter before a
digit ends a token, ...) and weighs them as `scripts/calibrate_tokens.py` fitted them to o200k_base. A long text is
sampled. Where the estimate is far off it is too high: runs of one letter, long words that the tokenizer knows.
"""

import importlib
import importlib.util
import random
import re
from functools import cache
from typing import Final, Protocol, cast

ENCODING: Final = "o200k_base"
_WINDOW: Final = 160
_FEWEST: Final = 10
_MOST: Final = 48
_PER_WINDOW: Final = 6144
_PIECE: Final = 1 << 20
_LONGEST: Final = 64  # bytes of a token, about: of blanks


def _kind(byte: int) -> str:
    """A letter for each kind of byte: the first bytes of UTF-8 sequences tell the script."""
    if byte < 0x80:
        character = chr(byte)
        if character.isalpha():
            return "a" if character.islower() else "A"
        return "0" if character.isdigit() else "\n" if character in "\r\n" else " " if character in " \t" else "."
    # continuation; Latin and Greek; Cyrillic; Semitic; Indic and Thai; signs; kana; Han; Hangul; forms; beyond the BMP
    ends = (0xBF, 0xCF, 0xD3, 0xDF, 0xE1, 0xE2, 0xE3, 0xE9, 0xED, 0xEF, 0xFF)
    return next(letter for last, letter in zip(ends, "zbkmcdjefgh", strict=True) if byte <= last)


_KINDS: Final = bytes(ord(_kind(byte)) for byte in range(256))
# A rule or padding is few tokens, however long. All these are looked for only where there is a long one.
_RULES: Final = [bytes([mark]) * 8 for mark in b" -=*#_"]
_RULE: Final = re.compile(rb"([-=*#_ ])\1{7,}")
ASCII_WEIGHTS: Final = {
    ".a": 1.399,
    "a ": 0.597,
    ". ": 0.986,
    "  ": 0.524,
    "..": 0.517,
    "a.": 0.012,
    ".0": 1.568,
    " a": 0.371,
    "aA": 1.070,
    "0a": 1.914,
    "\n ": 0.622,
    "A.": 0.337,
    "Aa": 0.821,
    "000": 0.944,
    "0.": 0.587,
    ".A": 0.615,
    "a\n": 1.379,
    "\na": 1.769,
    "0 ": 0.977,
    ".\n": 0.438,
    "\n.": 0.238,
    " 0": 1.178,
    "A ": 0.370,
    "\nA": 0.503,
    "....": 1.547,
    "0A": 1.305,
    "0\n": 1.876,
    "AA": 0.150,
    "AAAA": 0.632,
    "A0": 0.981,
    "A\n": 1.688,
    "a" * 14: 7.826,
}
"""How many tokens stand for each occurrence of a pattern of kinds."""
OTHER_WEIGHTS: Final = {
    "b": 0.427,
    "k": 0.337,
    "m": 0.448,
    "c": 0.423,
    "d": 0.800,
    "j": 0.783,
    "e": 0.907,
    "f": 0.800,
    "g": 1.600,
    "h": 1.947,
}
"""As `ASCII_WEIGHTS`, for the first bytes of what is not ASCII."""
_ASCII_PATTERNS: Final = [(pattern.encode(), weight) for pattern, weight in ASCII_WEIGHTS.items()]
_OTHER_PATTERNS: Final = [(pattern.encode(), weight) for pattern, weight in OTHER_WEIGHTS.items()]
_HARD_SPACE: Final = "\u00a0".encode()
_MANY: Final = 150
_RARE: Final = 1.1


def estimate(data: str | bytes | bytearray | memoryview) -> int:
    """About how many tokens (o200k_base) a text or its UTF-8 is. Never fails, takes about 0.1 ms for 64 KB."""
    if isinstance(data, memoryview):
        data = data.cast("B") if data.contiguous else data.tobytes()
    size = len(data)
    # Characters that are several bytes tell as much in fewer of them.
    window = _WINDOW // 2 if isinstance(data, str) and not data.isascii() else _WINDOW
    windows = max(_FEWEST, min(_MOST, size // _PER_WINDOW))
    if size <= windows * window:
        return int(_weigh(_bytes(data)) + 0.999)
    # Places that are the same for the same size, and yet in no step with what repeats in the text.
    stratum = (size - window) / windows
    jitter = random.Random(size).random  # noqa: S311
    starts = [int((number + jitter()) * stratum) for number in range(windows)]
    sample = b"".join([_bytes(data[start : start + window]) for start in starts])
    return int(_weigh(sample) * size / (windows * window) + 0.999)


def features(data: bytes) -> list[int]:
    """How often each pattern of the weights is in a text: what the calibration fits."""
    kinds = _kinds(data)
    return [kinds.count(pattern) for pattern, _ in _ASCII_PATTERNS + _OTHER_PATTERNS]


def _weigh(data: bytes) -> float:
    count = _kinds(data).count
    weight = sum([count(pattern) * weight for pattern, weight in _ASCII_PATTERNS])
    if not data.isascii():
        weight += sum([count(pattern) * weight for pattern, weight in _OTHER_PATTERNS])
        weight += data.count(_HARD_SPACE)
        weight += _RARE * count(b"e") if count(b"e") > _MANY and _is_table(data) else 0
    return max(weight, len(data) / _LONGEST)


def _is_table(data: bytes) -> bool:
    """Whether characters hardly ever repeat, as in a table of them: most of those no tokenizer knows whole."""
    text = data.decode("utf-8", "ignore")
    return len(set(text)) > 0.7 * len(text)


def _kinds(data: bytes) -> bytes:
    """The text with a letter for each byte; a last newline ends the last token."""
    for rule in _RULES:
        if rule in data:
            data = _RULE.sub(rb"\1\1", data)
            break
    return data.translate(_KINDS) + b"\n"


def _bytes(data: str | bytes | bytearray | memoryview) -> bytes:
    return data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)


class TokenizerMissing(ImportError):
    """No real tokenizer is installed. `str()` says how to install it."""


class Tokenizer(Protocol):
    """Counts tokens exactly, as one named encoding has them."""

    @property
    def name(self) -> str:
        """The encoding."""
        ...

    def count(self, text: str) -> int:
        """How many tokens a text is."""
        ...


class _Native(Protocol):
    def count(self, text: str) -> int: ...


class BytePairTokenizer:
    """A tokenizer of the extra `tokens`. What no encoding can express (lone surrogates) counts as a question mark."""

    def __init__(self, name: str, native: _Native) -> None:
        self.name, self._native = name, native

    def count(self, text: str) -> int:
        """How many tokens a text is; texts of many megabytes in pieces, to the token at each border."""
        return sum(self._count(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE))

    def _count(self, text: str) -> int:
        return self._native.count(text.encode("utf-8", "replace").decode())


class EstimatingTokenizer:
    """Stands in where the extra is not installed, and says so by its name."""

    name = "estimate"

    def count(self, text: str) -> int:
        """About how many tokens a text is."""
        return estimate(text)


def tokenizer_installed() -> bool:
    """Whether `tokenizer` can be had; nothing is loaded to find out."""
    return importlib.util.find_spec("quicktok") is not None


@cache
def tokenizer(name: str = ENCODING) -> Tokenizer:
    """The real tokenizer (`o200k_base` or `cl100k_base`): the first call loads it, in about half a second.

    Raises `TokenizerMissing` where the extra is not installed.
    """
    if name not in (ENCODING, "cl100k_base"):
        raise ValueError(f"no tokenizer {name!r}: use {ENCODING!r} or 'cl100k_base'")
    try:
        module = importlib.import_module("quicktok")
    except ImportError as error:
        raise TokenizerMissing(f"pip install 'polyplex[tokens]' for exact token counts ({error})") from None
    return BytePairTokenizer(name, cast(_Native, module.get_encoding(name)))


def best_tokenizer() -> Tokenizer:
    """The real tokenizer where it is installed, else the estimate; its `name` says which."""
    try:
        return tokenizer()
    except TokenizerMissing:
        return EstimatingTokenizer()
