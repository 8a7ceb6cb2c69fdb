"""Where a text is best cut: at a heading, a paragraph, a line, a sentence or a word, and never in a character."""

import re
from typing import Final, Literal

from polyplex.content.graphemes import safe_border

Style = Literal["markdown", "lines", "text"]

_HEADING: Final = re.compile(r"\n(?=#{1,6} \S)")
_PARAGRAPH: Final = re.compile(r"\n[ \t\r]*\n+")
_SENTENCE: Final = re.compile(r"[.!?\u2026][\"')\]\u201d\u2019]{0,3}[ \t\r\n]+|[\u3002\uff01\uff1f][\u300d\u300f]?")
_WORD: Final = re.compile(r"[ \t]+")
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# How far back a border of each kind may be, as a part of what would fit.
_REACH: Final[dict[Style, list[tuple[re.Pattern[str], float]]]] = {
    "markdown": [(_HEADING, 0.4), (_PARAGRAPH, 0.3), (re.compile(r"\n"), 0.3), (_SENTENCE, 0.3), (_WORD, 0.2)],
    "text": [(_PARAGRAPH, 0.25), (_SENTENCE, 0.15), (re.compile(r"\n"), 0.3), (_SENTENCE, 0.3), (_WORD, 0.2)],
    "lines": [(re.compile(r"\n"), 0.6), (_WORD, 0.2)],
}
_FARTHEST: Final = 20_000


def end_border(text: str, limit: int, style: Style) -> int:
    """The best place at or before `limit` for the shown beginning of a text to end; 0 where not one character fits."""
    if limit >= len(text):
        return len(text)
    for pattern, reach in _REACH[style]:
        lowest = limit - min(int(limit * reach), _FARTHEST)
        last = _last(pattern, text, lowest, limit)
        if last > 0:
            return safe_border(text, last)
    return safe_border(text, limit)


def _last(pattern: re.Pattern[str], text: str, lowest: int, limit: int) -> int:
    """Where the last match between two places ends; -1 without one."""
    last = -1
    for found in pattern.finditer(text, lowest, limit):
        last = found.end()
    return last


def start_border(text: str, earliest: int) -> int:
    """The best place at or after `earliest` for the shown end of a text to start: a line, a word, a character."""
    if earliest <= 0:
        return 0
    reach = min((len(text) - earliest) // 3, _FARTHEST)
    for pattern in (re.compile(r"\n"), _WORD):
        found = pattern.search(text, earliest - 1, earliest + reach)
        if found is not None:
            return found.end()
    place = safe_border(text, earliest)
    if place < earliest:  # the character that is broken is left out
        place = earliest
        while place < len(text) and place - earliest < 256 and safe_border(text, place) < place:
            place += 1
    return place


def fence_closing(kept: str) -> str:
    """What ends a Markdown fence that is still open at the end of a text; empty where none is."""
    opened = ""
    for fence in _FENCE.finditer(kept):
        marks, rest = fence[1], fence[2].strip()
        if not opened:
            opened = "" if marks[0] == "`" and "`" in rest else marks
        elif marks[0] == opened[0] and len(marks) >= len(opened) and not rest:
            opened = ""
    if not opened:
        return ""
    return opened + "\n" if kept.endswith("\n") else "\n" + opened + "\n"
