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
_WINDOW: Final = 208
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
    "a.": 0.567,
    "a ": 0.992,
    " .": 0.472,
    "\n ": 1.336,
    "0.": 1.541,
    "Aa": 1.593,
    "0a": 1.967,
    " 0": 2.350,
    "..": 1.139,
    "AA": 0.861,
    ".a": 0.480,
    "000": 0.949,
    "A0": 0.930,
    "a\n": 2.367,
    ".A": 1.512,
    "a" * 14: 7.826,
    "\na": 1.205,
    "0A": 0.751,
    "\n0": 1.858,
    ".\n": 0.300,
}
"""How many tokens stand for each occurrence of a pattern of kinds."""
OTHER_WEIGHTS: Final = {
    "b": 0.431,
    "k": 0.365,
    "m": 0.463,
    "c": 0.426,
    "d": 0.800,
    "j": 0.782,
    "e": 0.908,
    "f": 0.826,
    "g": 0.800,
    "h": 1.952,
}
"""As `ASCII_WEIGHTS`, for the first bytes of what is not ASCII."""
_ASCII_PATTERNS: Final = [(pattern.encode(), weight) for pattern, weight in ASCII_WEIGHTS.items()]
_ALL_PATTERNS: Final = _ASCII_PATTERNS + [(pattern.encode(), weight) for pattern, weight in OTHER_WEIGHTS.items()]


def estimate(data: str | bytes | bytearray | memoryview) -> int:
    """About how many tokens (o200k_base) a text or its UTF-8 is. Never fails, takes about 0.1 ms for 64 KB."""
    if isinstance(data, memoryview):
        data = data.cast("B") if data.contiguous else data.tobytes()
    size = len(data)
    windows = max(_FEWEST, min(_MOST, size // _PER_WINDOW))
    if size <= windows * _WINDOW:
        return int(_weigh(_bytes(data)) + 0.999)
    # Places that are the same for the same size, and yet in no step with what repeats in the text.
    stratum = (size - _WINDOW) / windows
    jitter = random.Random(size).random  # noqa: S311
    starts = [int((number + jitter()) * stratum) for number in range(windows)]
    pieces = [data[start : start + _WINDOW] for start in starts]
    sample = b"".join([_bytes(piece) for piece in pieces])
    return int(_weigh(sample) * size / (windows * _WINDOW) + 0.999)


def features(data: bytes) -> list[int]:
    """How often each pattern of the weights is in a text: what the calibration fits."""
    kinds = _kinds(data)
    return [kinds.count(pattern) for pattern, _ in _ALL_PATTERNS]


def _weigh(data: bytes) -> float:
    count = _kinds(data).count
    patterns = _ASCII_PATTERNS if data.isascii() else _ALL_PATTERNS
    return max(sum([count(pattern) * weight for pattern, weight in patterns]), len(data) / _LONGEST)


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
