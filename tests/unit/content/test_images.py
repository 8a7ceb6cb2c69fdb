import struct
import zlib

import pytest

from polyplex.content.images import Image, image_tokens, read_image


def png(width: int, height: int) -> bytes:
    """A picture of one colour that any reader shows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\x7f" * width for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    segments = b"\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\xff\xfe\0\x07hello" + b"\xff\xff\xdb\0\x04\0\0"
    return b"\xff\xd8" + segments + b"\xff\xc2\0\x11\x08" + struct.pack(">HH", height, width) + b"\3" + bytes(9)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + kind + struct.pack("<I", len(body)) + body + bytes(10)


PICTURES = {
    "PNG": png(640, 480),
    "JPEG": jpeg(640, 480),
    "GIF": b"GIF89a" + struct.pack("<HH", 640, 480) + bytes(5),
    "WebP": webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480 | 1 << 14)),
    "WebP lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14)),
    "WebP extended": webp(b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
    "BMP": b"BM" + bytes(12) + struct.pack("<Iii", 40, 640, -480) + bytes(8),
    "BMP of old": b"BM" + bytes(12) + struct.pack("<IHH", 12, 640, 480) + bytes(8),
    "SVG": b'<?xml version="1.0"?>\n<svg xmlns="x" width="640px" height="480">',
    "SVG with a box": b'<svg viewBox="0 0 640 480.2" xmlns="x">',
}


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_dimensions_are_read_from_headers(name: str) -> None:
    assert read_image(PICTURES[name]) == Image(name.split()[0], 640, 480)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_header_that_is_cut_is_no_error(name: str) -> None:
    for size in range(len(PICTURES[name])):
        found = read_image(PICTURES[name][:size])
        assert found is None or found[1:] == (640, 480)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x89PNG\r\n\x1a\n" + bytes(40),
        b"\xff\xd8" + b"\xff" * 5000,
        b"\xff\xd8" + b"\xff\xe0\0\0" * 900,
        b"<svg" * 900,
    ],
)
def test_what_only_looks_like_an_image_has_no_size(head: bytes) -> None:
    assert read_image(head) is None


def test_an_image_costs_what_its_pixels_do_up_to_what_providers_scale_to() -> None:
    assert image_tokens(30, 25) == 1
    assert image_tokens(750, 1000) == 1000
    assert image_tokens(20_000, 20_000) == 1600
