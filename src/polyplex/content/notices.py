"""The texts that tell a reader what is missing and how to get it: short, exact, and the same everywhere."""

from typing import Final

from polyplex.protocol.jsonrpc import encode_json

READ_TOOL: Final = "polyplex__read_payload"


def read_call(uri: str, **arguments: object) -> str:
    """How to read on, as a model would call it: `polyplex__read_payload {"uri": ...}`."""
    return f"{READ_TOOL} {encode_json({'uri': uri} | arguments).decode()}"


def cut_text(first: int, last: int, total: int, uri: str) -> str:
    """Characters `first` to `last` (excluded) of `total` are shown."""
    return (
        f"[cut: characters {first:,}–{last:,} of {total:,} shown; read on with {read_call(uri, offset=last)}]"
    )
