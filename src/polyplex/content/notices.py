"""The texts that tell a reader what is missing and how to get it: short, exact, and the same everywhere."""

from typing import Any, Final

from polyplex.content.cut import Cut
from polyplex.protocol.jsonrpc import encode_json

READ_TOOL: Final = "polyplex__read_payload"
NOTICE_TOKENS: Final = 90
"""What a notice costs at most; to be kept free when a text is cut."""


def read_call(uri: str, **arguments: Any) -> str:
    """How to read on, as a model would call it: `polyplex__read_payload {"uri": ..., "offset": ...}`."""
    return f"{READ_TOOL} {encode_json({'uri': uri} | arguments).decode()}"


def cut_notice(cut: Cut, uri: str | None) -> str:
    """What of a text is shown, and how to read on; without a payload only what is shown. Empty for a whole text."""
    if cut.whole:
        return ""
    onward = "; the rest was not kept" if uri is None else f"; read on with {read_call(uri, offset=cut.resume_bytes)}"
    if cut.tail_start is not None:
        return f"[cut: characters {cut.end:,} to {cut.tail_start:,} of {cut.total:,} are left out here{onward}]"
    return f"[cut: {shown(cut)}{onward}]"


def shown(cut: Cut) -> str:
    """What of a text is shown, in its own units."""
    if cut.records_shown is not None and cut.records_total is not None:
        unit = {"csv": "rows", "tsv": "rows", "lines": "lines", "jsonl": "records"}.get(cut.kind, "elements")
        where = f" of {cut.key!r}" if cut.key is not None else ""
        return f"the first {cut.records_shown:,} of {cut.records_total:,} {unit}{where} shown"
    return f"characters 0 to {cut.end:,} of {cut.total:,} shown"


def shown_fields(cut: Cut, uri: str | None) -> dict[str, Any]:
    """The same as data, for `_meta` and structured content."""
    fields: dict[str, Any] = {
        "kind": cut.kind,
        "characters": {"shown": cut.end, "total": cut.total, "tailStart": cut.tail_start},
        "bytes": {"shown": cut.end_bytes, "total": cut.total_bytes, "next": cut.resume_bytes},
    }
    if cut.records_shown is not None:
        fields["records"] = {"shown": cut.records_shown, "total": cut.records_total, "key": cut.key}
    if uri is not None:
        fields["uri"] = uri
    return fields


def shrunk_notice(pointers: tuple[str, ...], uri: str) -> str:
    """Where in structured content something was cut."""
    named = ", ".join(pointer or "the whole" for pointer in pointers[:6])
    more = f" and {len(pointers) - 6:,} more places" if len(pointers) > 6 else ""
    return f"[cut: structured content at {named}{more}; whole: {read_call(uri)}]"
