"""Where a text can be cut without breaking a character in two: surrogates, combining marks, joined emoji, escapes."""

import re
import unicodedata
from typing import Final

_FURTHEST: Final = 128
_JOINER: Final = "\u200d"
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\^_])")


def safe_border(text: str, at: int) -> int:
    """The last place at or before `at` that breaks no character as a reader sees it, and no ANSI escape.

    A sequence longer than 128 characters is broken all the same, but never a pair of surrogates.
    """
    if at <= 0:
        return 0
    if at >= len(text):
        return len(text)
    if text.isascii() and text[at - 1] != "\r" and text.rfind("\x1b", max(0, at - _FURTHEST), at) < 0:
        return at
    place = at
    for _ in range(8):
        moved = _before_escape(text, _before_cluster(text, place))
        if moved == place:
            break
        place = moved
    if at - place >= _FURTHEST:
        place = at - _splits_pair(text, at)
    return place


def _before_cluster(text: str, at: int) -> int:
    last = max(0, at - _FURTHEST)
    while at > last and _joined(text, at):
        at -= 1
    return at


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of a place belong together."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if _extends(after) or before == _JOINER or _splits_pair(text, at) or _is_conjunct(before, after):
        return True
    if _is_flag(before) and _is_flag(after):
        run = 1
        while run < _FURTHEST and run < at and _is_flag(text[at - 1 - run]):
            run += 1
        return run % 2 == 1
    return _is_jamo(before, after)


def _extends(character: str) -> bool:
    code = ord(character)
    return (
        code == 0x200D
        or 0xFE00 <= code <= 0xFE0F
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or 0xE0100 <= code <= 0xE01EF
        or unicodedata.category(character) in ("Mn", "Mc", "Me")
    )


def _is_conjunct(before: str, after: str) -> bool:
    """Whether a sign that kills a vowel ties two Indic consonants."""
    return unicodedata.combining(before) == 9 and unicodedata.category(after) == "Lo"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_jamo(before: str, after: str) -> bool:
    """Whether two Hangul letters make one syllable."""
    if not "\u1160" <= after <= "\u11ff":
        return "\u1100" <= before <= "\u115f" and "\u1100" <= after <= "\u115f"
    return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"


def _splits_pair(text: str, at: int) -> bool:
    return "\ud800" <= text[at - 1] <= "\udbff" and "\udc00" <= text[at] <= "\udfff"


def _before_escape(text: str, at: int) -> int:
    begin = text.rfind("\x1b", max(0, at - _FURTHEST), at)
    if begin < 0:
        return at
    sequence = _ESCAPE.match(text, begin)
    return begin if sequence is not None and sequence.end() > at else at
