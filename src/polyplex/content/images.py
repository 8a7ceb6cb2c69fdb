"""What the first bytes of an image tell, and what an image costs a model."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# Providers scale images down to about 1,600 tokens, and count about 750 pixels for one.
_MOST_TOKENS: Final = 1600
_PIXELS_PER_TOKEN: Final = 750
_SVG: Final = re.compile(rb"<svg\b[^>]{0,4000}")
_SIDE: Final = re.compile(rb"""\s(width|height)=["'](\d{1,9}(?:\.\d{1,9})?)(?:px)?["']""")
_BOX: Final = re.compile(rb"""\sviewBox=["'][-\d.]{1,20}[ ,]+[-\d.]{1,20}[ ,]+([\d.]{1,20})[ ,]+([\d.]{1,20})["']""")
_JPEG_SIZES: Final = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Image(NamedTuple):
    """The format of an image by its usual name, and its size in pixels."""

    format: str
    width: int
    height: int


def read_image(head: bytes) -> Image | None:
    """What an image's first bytes say; None where they are of no image that is known here, or too few."""
    for format, found in _readers(head):
        if found is not None and min(found) > 0:
            return Image(format, *found)
    return None


def image_tokens(width: int, height: int) -> int:
    """About what an image of this size costs a model, as providers count."""
    return max(1, min(_MOST_TOKENS, -(-width * height // _PIXELS_PER_TOKEN)))


def _readers(head: bytes) -> Iterator[tuple[str, tuple[int, int] | None]]:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        yield "PNG", _two(head, 16, 4, "big") if head[12:16] == b"IHDR" else None
    elif head[:4] == b"GIF8":
        yield "GIF", _two(head, 6, 2, "little")
    elif head[:2] == b"\xff\xd8":
        yield "JPEG", _jpeg(head)
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        yield "WebP", _webp(head)
    elif head[:2] == b"BM":
        yield "BMP", _bmp(head)
    elif b"<svg" in head[:4000]:
        yield "SVG", _svg(head)


def _two(head: bytes, at: int, size: int, order: str) -> tuple[int, int] | None:
    if len(head) < at + 2 * size:
        return None
    numbers = [
        int.from_bytes(head[at + size * n : at + size * (n + 1)], "big" if order == "big" else "little") for n in (0, 1)
    ]
    return numbers[0], numbers[1]


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """The size in the frame header, which comes after other segments, each with its length."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_SIZES:
            found = _two(head, at + 5, 2, "big")
            return None if found is None else (found[1], found[0])
        elif 0xD0 <= marker <= 0xD8 or marker == 0x01:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    if len(head) < 30:
        return None
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if kind == b"VP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None


def _bmp(head: bytes) -> tuple[int, int] | None:
    if len(head) < 26:
        return None
    if int.from_bytes(head[14:18], "little") == 12:
        return _two(head, 18, 2, "little")
    wide, high = (int.from_bytes(head[at : at + 4], "little", signed=True) for at in (18, 22))
    return wide, abs(high)


def _svg(head: bytes) -> tuple[int, int] | None:
    opening = _SVG.search(head)
    if opening is None:
        return None
    sides = {name: float(value) for name, value in _SIDE.findall(opening[0])}
    if len(sides) == 2:
        return round(sides[b"width"]), round(sides[b"height"])
    box = _BOX.search(opening[0])
    try:
        return None if box is None else (round(float(box[1])), round(float(box[2])))
    except (ValueError, OverflowError):
        return None
