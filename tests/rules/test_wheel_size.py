"""What users download: word vectors are most of it."""

import zlib

from tests.rules.sources import PACKAGE, files

WHEEL_BYTES = 12_000_000


def test_the_wheel_stays_small() -> None:
    shipped = files("src/polyplex")
    assert PACKAGE / "embed" / "data" / "rows.npy" in shipped
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in shipped) < WHEEL_BYTES
