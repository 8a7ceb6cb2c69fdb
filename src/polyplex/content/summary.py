"""What stands for the middle of a long text."""

from typing import Any


def extractive(text: str, max_tokens: int, *, media_type: str | None = None) -> str:
    """Headings, key lines, columns and their ranges of a text, without a model, in at most `max_tokens`."""
    raise NotImplementedError


def sampling_request(text: str, focus: str | None, max_tokens: int) -> dict[str, Any]:
    """The params of `sampling/createMessage` that ask the client's own model for a summary."""
    raise NotImplementedError


def sampling_answer(result: bytes) -> str | None:
    """The summary in a result of `sampling/createMessage`; None where it has no text."""
    raise NotImplementedError
