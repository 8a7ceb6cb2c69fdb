"""The public names of the library. Adding one is a decision, removing one a breaking change: both change this list."""

import polyplex

PUBLIC_NAMES = ["ConfigError", "Multiplexer", "PolyplexError", "RpcError", "UpstreamError"]


def test_the_public_names_are_these() -> None:
    assert sorted(polyplex.__all__) == sorted(PUBLIC_NAMES)


def test_every_public_name_is_there() -> None:
    assert [name for name in polyplex.__all__ if not hasattr(polyplex, name)] == []
