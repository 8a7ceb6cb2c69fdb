"""Embedders by name."""

from typing import Literal

from polyplex.embed.embedder import Embedder

EmbedderName = Literal["static", "minilm"]


def open_embedder(name: EmbedderName) -> Embedder:
    """Load an embedder: some milliseconds for `static`, about a second for `minilm`. Both are kept once loaded.

    Raises `MissingExtraError` where `minilm` is not installed.
    """
    if name == "static":
        from polyplex.embed.table import shipped_table

        return shipped_table()
    from polyplex.embed.minilm import installed_minilm

    return installed_minilm()
