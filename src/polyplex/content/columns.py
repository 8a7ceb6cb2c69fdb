"""What a table's columns hold: their types, ranges and examples. From rows of cells or of JSON objects."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from polyplex.content import records
from polyplex.content.records import RecordKind
from polyplex.content.values import is_array

_INTEGER: Final = re.compile(r"[-+]?\d{1,18}")
_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,3})?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_TRUTHS: Final = {"true", "false", "True", "False", "TRUE", "FALSE"}
_LONGEST_EXAMPLE: Final = 24
_MOST_VALUES: Final = 50
_LONGEST_NAME: Final = 60


class Column:
    """One column: fed with values, it can say what they are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = self.empty = 0
        self.types: dict[str, int] = {}
        self.lowest: Any = None
        self.highest: Any = None
        self.values: dict[str, None] = {}
        self.many = False

    def add(self, value: Any) -> None:
        """Count a cell of a table (text), or a value of JSON."""
        self.count += 1
        if value is None or value == "":
            self.empty += 1
            return
        kind, measure = _typed(value) if isinstance(value, str) else _json_typed(value)
        self.types[kind] = self.types.get(kind, 0) + 1
        if measure is not None:
            if self.lowest is None:
                self.lowest = self.highest = measure
            elif (
                type(measure) is str
                and type(self.lowest) is str
                or not (type(measure) is str or type(self.lowest) is str)
            ):
                self.lowest = min(measure, self.lowest)
                self.highest = max(measure, self.highest)
        if len(self.values) < _MOST_VALUES:
            self.values.setdefault(str(value)[:200] if kind in ("string", "boolean") else "")
        elif kind == "string" and str(value)[:200] not in self.values:
            self.many = True

    def describe(self) -> str:
        """`town string, 6 different: Oldbridge, Fenwick, …`"""
        name = _short(self.name, _LONGEST_NAME) or '""'
        if not self.types:
            return f"{name} empty"
        kinds = sorted(self.types, key=lambda kind: -self.types[kind])
        if set(kinds) == {"integer", "number"}:
            kinds = ["number"]
        said = f"{name} {'|'.join(kinds[:3])}"
        if self.lowest is not None and self.lowest == self.highest:
            said += f" {self.lowest}"
        elif self.lowest is not None:
            said += f" {self.lowest}–{self.highest}"
        elif "string" in self.types:
            said += self._examples()
        return said + (f" ({self.empty:,} empty)" if self.empty else "")

    def _examples(self) -> str:
        values = [value for value in self.values if value]
        if not self.many and len(values) <= 8 and self.count > 2 * len(values):
            if len(values) == 1:
                return f", always {_short(values[0])}"
            shown, more = [_short(value) for value in values[:4]], len(values) > 4
            return f", {len(values)} different: " + ", ".join(shown) + (", …" if more else "")
        return ", e.g. " + _short(values[0]) if values else ""


def table_columns(rows: Sequence[Sequence[str]], names: Sequence[str] | None) -> list[Column]:
    """The columns of rows of cells; without names they are numbered."""
    width = max((len(row) for row in rows), default=len(names or ()))
    known = list(names or ())
    found = [Column(known[place] if place < len(known) else f"column {place + 1}") for place in range(width)]
    for row in rows:
        for column, cell in zip(found, row, strict=False):
            column.add(cell)
    return found


def object_columns(rows: Iterable[Mapping[str, Any]], most: int = 200) -> list[Column]:
    """The members of JSON objects as columns, in the order in which they come first; one that is absent is empty."""
    found: dict[str, Column] = {}
    count = 0
    for row in rows:
        for key, value in row.items():
            column = found.get(key)
            if column is None:
                if len(found) >= most:
                    continue
                column = found[key] = Column(key)
            column.add(value)
        count += 1
    for column in found.values():
        column.empty += count - column.count
        column.count = count
    return list(found.values())


def read_rows(data: bytes, kind: RecordKind, most: int) -> tuple[list[str] | None, list[list[str]], records.Records]:
    """The header of a table, its first rows as cells, and where all of them are."""
    found = records.split(data, kind)
    delimiter = found.delimiter or ","
    header = None if found.header is None else _cells(data[found.header.start : found.header.end], delimiter)
    return header, [_cells(data[start:end], delimiter) for start, end in found.spans[:most]], found


def _cells(row: bytes, delimiter: str) -> list[str]:
    text = row[:100_000].decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    if '"' not in text:
        return text.split(delimiter)
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            return cells
    except csv.Error:
        pass  # a cell that is too long, or a lone carriage return
    return text.split(delimiter)


def _typed(cell: str) -> tuple[str, Any]:
    text = cell.strip()
    if _INTEGER.fullmatch(text):
        return "integer", int(text)
    if _NUMBER.fullmatch(text):
        return "number", float(text)
    if text in _TRUTHS:
        return "boolean", None
    if _DATE.fullmatch(text):
        return "date", text
    return "string", None


def _json_typed(value: Any) -> tuple[str, Any]:
    if isinstance(value, bool):
        return "boolean", None
    if isinstance(value, int):
        return "integer", value
    if isinstance(value, float):
        return "number", value
    return ("array", None) if is_array(value) else ("object", None)


def _short(text: str, most: int = _LONGEST_EXAMPLE) -> str:
    text = " ".join(text[: most * 4].split())
    return text if len(text) <= most else text[: most - 1] + "…"
