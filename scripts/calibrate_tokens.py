"""Fit the weights of `polyplex.content.tokens.estimate` to a real tokenizer, and print them with what they come to.

Run it where the extra `tokens` is installed: `python scripts/calibrate_tokens.py`. It reads the texts of the tests, and
those of the standard library and the installed packages, half of which it holds back.
"""

import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from polyplex.content import tokens  # noqa: E402
from tests.unit.content.texts import KINDS  # noqa: E402

ROUNDS = 60_000
# What no weight may leave, so that a kind that is rare in these texts is not explained by another.
BOUNDS = {
    "a" * 14: (0.0, 8.0),
    ".\n": (0.2, 2.6),
    "AA": (0.15, 2.6),
    "d": (0.8, 1.6),
    "g": (0.8, 1.6),
    "h": (1.6, 3.0),
    "e": (0.8, 1.2),
}
SUFFIXES = {".py", ".pyi", ".js", ".json", ".md", ".h", ".ts", ".css", ".html", ".txt", ".yml", ".rst", ""}
EACH = 120
SHORTEST = 600
LONGEST = 30_000
_Numbers = np.ndarray[Any, np.dtype[np.float64]]


def bounded_fit(features: _Numbers, wanted: _Numbers, lowest: _Numbers, highest: _Numbers) -> _Numbers:
    """Least squares with bounds: projected gradients with momentum."""
    scale = np.sqrt((features**2).mean(0)) + 1e-12
    scaled = features / scale
    square, slope = scaled.T @ scaled + 1e-4 * len(wanted) * np.eye(scaled.shape[1]) * 0.01, scaled.T @ wanted
    step = 1 / np.linalg.norm(square, 2)
    weights = ahead = np.zeros(scaled.shape[1])
    pace = 1.0
    for _ in range(ROUNDS):
        better = np.clip(ahead - (square @ ahead - slope) * step, lowest * scale, highest * scale)
        faster = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
        ahead = better + (pace - 1) / faster * (better - weights)
        weights, pace = better, faster
    return weights / scale


def found_texts() -> dict[str, str]:
    """Texts of the installed packages (Node.js is among them) and the standard library, of each kind alike."""
    kinds: dict[str, list[Path]] = {}
    for root in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")):
        for path in sorted(Path(root).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                kinds.setdefault(f"{root} {path.suffix or path.name}", []).append(path)
    found: dict[str, str] = {}
    for paths in kinds.values():
        for path in paths[:: max(1, len(paths) // EACH)]:
            text = path.read_text(encoding="utf-8", errors="replace")[:LONGEST]
            if len(text) > SHORTEST and "\ufffd" not in text:
                found[str(path)] = text
    return found


def main() -> None:
    """Fit, judge and print."""
    texts = {name: make() for name, make in KINDS.items()}
    texts |= found_texts()
    patterns = [*tokens.ASCII_WEIGHTS, *tokens.OTHER_WEIGHTS]
    tokenizer = tokens.tokenizer()
    counts = np.array([tokenizer.count(text) for text in texts.values()], float)
    features = np.array([tokens.features(text.encode()) for text in texts.values()], float)
    ours = np.array([name in KINDS for name in texts])
    trained = ours | (np.arange(len(texts)) % 2 == 0)
    pull = np.where(ours, 3.0, 0.6) / counts
    bounds = np.array([BOUNDS.get(pattern, (0.0, 2.6)) for pattern in patterns])
    weights = bounded_fit((features * pull[:, None])[trained], (counts * pull)[trained], *bounds.T)
    print(
        "{\n"
        + "".join(f"    {pattern!r}: {weight:.3f},\n" for pattern, weight in zip(patterns, weights, strict=True))
        + "}"
    )
    ratios = features @ weights / counts
    for name, ratio in zip(texts, ratios, strict=True):
        if name in KINDS:
            print(f"{name:22s} {ratio:.2f}")
    print("held back: percentiles 1, 5, 50, 95, 99:", np.percentile(ratios[~trained], [1, 5, 50, 95, 99]).round(2))


if __name__ == "__main__":
    main()
