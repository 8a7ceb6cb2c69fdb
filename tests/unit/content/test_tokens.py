import subprocess
import sys
import tracemalloc

import pytest

from polyplex.content import tokens
from polyplex.content.tokens import EstimatingTokenizer, TokenizerMissing, best_tokenizer, estimate, tokenizer
from tests.unit.content.texts import KINDS

# Texts in capitals are harder to tell, and what repeats one mark.
ROUGH = {"rules": 0.4, "base32": 0.3, "prose in capitals": 0.3, "capital digests": 0.25}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_estimate_is_close_to_a_real_tokenizer(name: str) -> None:
    text = KINDS[name]()
    assert estimate(text) == pytest.approx(tokenizer().count(text), rel=ROUGH.get(name, 0.15))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_estimate_of_a_sample_is_as_close(name: str) -> None:
    text = KINDS[name]()
    text *= 300_000 // len(text) + 1
    assert estimate(text) == pytest.approx(tokenizer().count(text), rel=ROUGH.get(name, 0.2))


def test_a_text_of_many_kinds_is_sampled_everywhere() -> None:
    text = "".join(make() for make in KINDS.values()) * 4
    assert estimate(text) == pytest.approx(tokenizer().count(text), rel=0.15)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_few_words_are_never_far_off(name: str) -> None:
    text = KINDS[name]()[:160]
    counted = tokenizer().count(text)
    assert counted / 2 < estimate(text) < counted * 2


def test_text_and_its_bytes_cost_the_same() -> None:
    text = KINDS["mixed"]()[:400]
    assert estimate(text) == estimate(text.encode()) == estimate(bytearray(text.encode()))
    assert estimate(memoryview(text.encode())) == estimate(text)
    assert estimate(memoryview(text.encode())[::2]) > 0


@pytest.mark.parametrize("text", ["", b"", "\ud800\udfff" * 9, b"\xff\xfe\x80" * 2000, "\0" * 10_000])
def test_anything_has_an_estimate(text: str | bytes) -> None:
    assert estimate(text) >= 0
    assert (estimate(text) == 0) == (len(text) == 0)


def test_a_large_text_is_not_copied() -> None:
    data = b"a word and another, " * 2_000_000
    estimate(data)
    tracemalloc.start()
    try:
        estimate(memoryview(data))
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_the_real_tokenizer_has_a_name_and_counts_what_no_encoding_can_express() -> None:
    real = tokenizer()
    assert real.name == "o200k_base"
    assert real is tokenizer()
    assert real.count("hello world") == 2
    assert real.count("a\ud800b") == real.count("a?b")
    assert real.count("<|endoftext|>") > 1
    assert tokenizer("cl100k_base").name == "cl100k_base"


def test_a_long_text_is_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = KINDS["prose"]()
    whole = tokenizer().count(text)
    monkeypatch.setattr(tokens, "_PIECE", 500)
    assert tokenizer().count(text) == pytest.approx(whole, abs=len(text) / 500)


def test_an_unknown_encoding_is_named() -> None:
    with pytest.raises(ValueError, match="o200k_base"):
        tokenizer("gpt-9")


def test_without_the_extra_it_is_an_estimate_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quicktok", None)
    tokenizer.cache_clear()
    with pytest.raises(TokenizerMissing, match=r"polyplex\[tokens\]"):
        tokenizer()
    stand_in = best_tokenizer()
    assert isinstance(stand_in, EstimatingTokenizer)
    assert stand_in.name == "estimate"
    assert stand_in.count("hello world") == estimate("hello world")


def test_the_tokenizer_is_not_loaded_before_it_is_used() -> None:
    code = (
        "import sys, polyplex.content.tokens as t; t.estimate('a b'); t.tokenizer_installed();"
        "print('quicktok' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
