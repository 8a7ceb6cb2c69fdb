"""The shape of a payload in a few tokens."""


def preview(data: bytes, media_type: str, total_bytes: int, *, tail: bytes = b"", max_tokens: int = 300) -> str:
    """What is in a payload, from its first bytes (`data`) and its last ones (`tail`), in at most `max_tokens`."""
    raise NotImplementedError
