"""What a content is, from its first bytes and what it is declared to be."""


def sniff(data: str | bytes, declared: str | None = None) -> str:
    """The media type of a content whose beginning is given, without parameters."""
    raise NotImplementedError
