"""Where a configuration came from: turns a path of keys into errors and warnings that name file, line and key."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from polyplex.config.jsonc import Document, KeyPath
from polyplex.errors import ConfigError

MAX_WARNINGS = 100
PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,63}")


@dataclass(slots=True)
class Source:
    """A file (None for a dict from code), the folder its paths are relative to, its text with the line of each key,
    the warnings so far, and the paths of the strings that held variables."""

    file: Path | None
    folder: Path
    document: Document
    warnings: list[str] = field(default_factory=list[str])
    expanded: set[KeyPath] = field(default_factory=set[KeyPath])

    def error(self, path: KeyPath, message: str) -> ConfigError:
        """An error about the key at `path`. The message must not hold values that may be secret."""
        return ConfigError(message, file=self.file, line=self.document.line(path), key=key_text(path))

    def warn(self, path: KeyPath, message: str) -> None:
        """Note a warning about the key at `path`; beyond the first hundred they are dropped."""
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(str(self.error(path, message)))


def key_text(path: KeyPath) -> str:
    """A path as text: `mcpServers.files.args[0]`, with keys that are no plain words quoted in brackets."""
    parts: list[str] = []
    for key in path:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        elif PLAIN_KEY.fullmatch(key):
            parts.append(f".{key}" if parts else key)
        else:
            parts.append(f"[{quoted(key)}]")
    return "".join(parts)


def quoted(text: str) -> str:
    """A key or name for a message: in double quotes, on one line, at most 80 characters of it."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    escaped = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in shown)
    return msgspec.json.encode(escaped.encode("utf-8", "replace").decode()).decode()


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` for the closest of the known names, or the only one that goes on (`ttl`), or nothing."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    longer = [candidate for candidate in by_lower if len(name) > 2 and candidate.startswith(name.lower())]
    if not close and len(longer) == 1:
        close = longer
    return f"; did you mean {quoted(by_lower[close[0]])}?" if close else ""
