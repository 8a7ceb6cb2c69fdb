"""Descriptions that are docstrings: what they say of parameters belongs to the parameters."""

import re
from collections.abc import Collection
from typing import Final

from msgspec import Struct

_HEADING: Final = re.compile(
    r"^[ \t#*]*(args?|arguments|parameters?|params|inputs?|returns?|yields|raises|examples?|notes?|usage|output|"
    r"input schema|\u53c2\u6570|\u8fd4\u56de)[ \t*]*[:\uff1a][ \t*]*(.*)$",
    re.IGNORECASE,
)
_PARAMETERS: Final = {
    "arg",
    "args",
    "arguments",
    "parameter",
    "parameters",
    "param",
    "params",
    "input",
    "inputs",
    "参数",
}
_ITEM: Final = re.compile(
    r"^\s*(?:[-*\u2022]\s*)?[`'\"*]*([A-Za-z_][\w.-]*)[`'\"*]*\s*(?:\(([^)]*)\))?\s*[:\uff1a]\s*(.*)$"
)
_SPHINX: Final = re.compile(r"^\s*(?::param|@param)\s+(?:\{?\w+\}?\s+)?(\w+)\s*[:-]?\s*(.*)$")
MAX_LINES: Final = 2000


class Docstring(Struct, frozen=True):
    """The text before its sections, what it says of each parameter, and the other sections by heading."""

    summary: str
    parameters: dict[str, str]
    sections: dict[str, str]


def read_docstring(text: str, names: Collection[str]) -> Docstring:
    """Take a description apart; `names` are the parameters that the tool has."""
    summary: list[str] = []
    found: dict[str, list[str]] = {}
    sections: dict[str, list[str]] = {}
    heading, current, margin, blank = "", "", 0, False
    for line in text.splitlines()[:MAX_LINES]:
        indent = len(line) - len(line.lstrip())
        title = _HEADING.match(line)
        if title is not None and title[1].lower() not in names:
            heading, current, margin = title[1].lower(), "", indent
            sections.setdefault(heading, [title[2]] if title[2] else [])
            continue
        sphinx = _SPHINX.match(line)
        item = sphinx or (_ITEM.match(line) if heading in _PARAMETERS else None)
        if heading and item is None and blank and line.strip() and indent <= margin:
            heading = current = ""  # a section ends where a paragraph begins at its margin
        blank = not line.strip()
        if item is not None and item[1] in names:
            current = item[1]
            found.setdefault(current, []).append(item[2] if sphinx else item[3])
        elif current and not blank and (heading in _PARAMETERS or not heading):
            found[current].append(line)
        elif heading:
            current = ""
            sections[heading].append(line)
        else:
            current = ""
            summary.append(line)
    return Docstring(
        "\n".join(summary).strip(),
        {name: " ".join(" ".join(lines).split()) for name, lines in found.items() if "".join(lines).strip()},
        {name: "\n".join(lines).strip() for name, lines in sections.items() if name not in _PARAMETERS},
    )
