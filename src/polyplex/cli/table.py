"""Tables: a first column of text that gives way, then columns of numbers."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from polyplex.cli.terminal import Terminal, shorten

GAP: Final = "  "
LEAST_NAME: Final = 16
FULL_WIDTH: Final = 200


class Row(NamedTuple):
    """Cells of one line, the first left-aligned and the others right-aligned."""

    cells: tuple[str, ...]
    bold: bool = False
    dim: bool = False


def table(head: tuple[str, ...], rows: Sequence[Row], page: Terminal) -> str:
    """Lines of equal columns, no wider than a terminal where there is one; columns that stay empty are left out."""
    kept = [column for column in range(len(head)) if column == 0 or any(row.cells[column] for row in rows)]
    lines = [[head[column] for column in kept], *([row.cells[column] for column in kept] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(kept))]
    room = (page.width if page.interactive else FULL_WIDTH) - sum(widths[1:]) - len(GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(LEAST_NAME, room))
    plain = [_line(line, widths) for line in lines]
    styles = [(False, True), *((row.bold, row.dim) for row in rows)]
    return "\n".join(
        page.paint(line, "bold") if bold else page.paint(line, "dim") if dim else line
        for line, (bold, dim) in zip(plain, styles, strict=True)
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = f"{shorten(cells[0], widths[0]):<{widths[0]}}"
    numbers = [f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return GAP.join((first, *numbers)).rstrip()
