"""What a content is, from its beginning and from what it is declared to be. Only the beginning is looked at."""

import re
from typing import Final

SAMPLE: Final = 16_384
LOG_LINES: Final = 20
JSON: Final = "application/json"
JSON_LINES: Final = "application/jsonl"
CSV: Final = "text/csv"
TSV: Final = "text/tab-separated-values"
MARKDOWN: Final = "text/markdown"
HTML: Final = "text/html"
XML: Final = "application/xml"
SVG: Final = "image/svg+xml"
LOG: Final = "text/x-log"
CODE: Final = "text/x-code"
PLAIN: Final = "text/plain"
BINARY: Final = "application/octet-stream"

_SAME: Final = {
    "text/json": JSON,
    "application/x-ndjson": JSON_LINES,
    "application/ndjson": JSON_LINES,
    "application/x-jsonlines": JSON_LINES,
    "application/json-lines": JSON_LINES,
    "application/json-seq": JSON_LINES,
    "application/csv": CSV,
    "text/x-csv": CSV,
    "text/tsv": TSV,
    "text/x-markdown": MARKDOWN,
    "text/xml": XML,
    "application/xhtml+xml": HTML,
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
}
# These say no more than that it is bytes or text.
_VAGUE: Final = {
    "",
    BINARY,
    "application/x-octet-stream",
    "application/binary",
    "binary/octet-stream",
    PLAIN,
    "text",
    "*/*",
}
_MAGIC: Final[list[tuple[bytes, str]]] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-executable"),
    (b"\x00asm", "application/wasm"),
]
_TYPE: Final = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_JSON_PREFIX: Final = re.compile(
    r'(?:[\s,:\[\]{}]++|"(?:[^"\\\n]++|\\.)*"|-?\d[\d.eE+-]*+|true|false|null)*("(?:[^"\\\n]++|\\.)*\\?|[truefalsn]{1,4}|-)?\Z'
)
_JSON_START: Final = re.compile(r'\s*+(?:\{\s*+(?:"|\}|\Z)|\[\s*+(?:[\[{"\]\d-]|true|false|null|\Z))')
_HTML: Final = re.compile(
    r"<(?:!doctype html|html|head|body|div|table|tr|p|ul|h[1-6]|span|script|meta)\b", re.IGNORECASE
)
_XML: Final = re.compile(r"<\?xml\b|<(?:!--|[A-Za-z_][\w.:-]*+(?:\s[^<>]{0,400})?>)")
_HEADING: Final = re.compile(r"^#{1,6} \S", re.MULTILINE)
_MARKDOWN: Final = [
    re.compile(r"^(?:```|~~~)", re.MULTILINE),
    re.compile(r"^ {0,3}[-*+] \S", re.MULTILINE),
    re.compile(r"^ {0,3}\d{1,3}\. \S", re.MULTILINE),
    re.compile(r"\[[^\]\n]{1,200}\]\([^)\s]{1,400}\)"),
    re.compile(r"^\|?(?:[ \t]*+:?-{3,}+:?[ \t]*+\|)+", re.MULTILINE),
    re.compile(r"\*\*[^*\n]{1,200}\*\*"),
    re.compile(r"^> \S", re.MULTILINE),
]
_LOG_LINE: Final = re.compile(
    r"\W?\d{4}[-/.]\d\d[-/.]\d\d[T ,]\s*\d\d:\d\d|\W?\d\d?:\d\d:\d\d\b|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\W?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"
)
_CODE: Final = re.compile(
    r"^(?:#!|[ \t]*(?:(?:def|class|import|from [\w.]+ import|function|const|let|var|public|private|static|fn|impl|func"
    r"|package|namespace|#include|using|struct|interface|export|module|async|return|@\w+)\b|(?:if|for|while|with|elif)\b"
    r"[^\n]{0,200}[:{)]$|(?:else|try|finally):$|[\w.]{1,60} [+|]?= |[\w.]{1,60}\([^\n]{0,200}\)$)|[^\n]*[;{}][ \t]*$)",
    re.MULTILINE,
)
_REMARK: Final = re.compile(r"[ \t]*+(?:#|//|/?\*)")
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x08\x1b")) + b"\x7f"


def sniff(data: str | bytes, declared: str | None = None) -> str:
    """The media type of a content, in small letters and without parameters.

    What is declared counts, unless it says nothing (`text/plain`, `application/octet-stream`) or the bytes say
    otherwise. Never fails.
    """
    declared = media_type(declared)
    if isinstance(data, str):
        return declared if declared not in _VAGUE else text_type(data[:SAMPLE])
    head = bytes(data[:SAMPLE])
    magic = _by_magic(head)
    if magic is not None:
        # A document of an office is a zip, a voice memo an ogg: then the declaration knows more.
        return declared if declared not in _VAGUE and not declared.startswith(("text/", "image/")) else magic
    text = _decoded(head)
    if text is None:
        return declared if declared not in _VAGUE else BINARY
    return declared if declared not in _VAGUE else text_type(text)


def media_type(declared: str | None) -> str:
    """A declared media type in its usual spelling; empty where there is none that is well-formed."""
    name = (declared or "")[:200].partition(";")[0].strip().lower()
    return _SAME.get(name, name) if _TYPE.fullmatch(name) else ""


def is_text(kind: str) -> bool:
    """Whether contents of a media type are read as text."""
    return (
        kind.startswith("text/")
        or kind in (JSON, JSON_LINES, XML, SVG)
        or kind.endswith(("+json", "+xml"))
        or (
            kind
            in (
                "application/javascript",
                "application/yaml",
                "application/x-yaml",
                "application/toml",
                "application/sql",
            )
        )
    )


def text_type(text: str) -> str:
    """The media type of a text whose beginning is given."""
    text = text.removeprefix("\ufeff")
    start = text.lstrip()[:SAMPLE]
    if not start:
        return PLAIN
    if start[0] in "[{":
        kind = _json_type(start)
        if kind is not None:
            return kind
    if start[0] == "<":
        if _HTML.match(start):
            return HTML
        if start.startswith("<svg") or (start.startswith("<?xml") and "<svg" in start[:1000]):
            return SVG
        if _XML.match(start):
            return HTML if _HTML.search(start[:2000]) and not start.startswith("<?xml") else XML
    lines = _whole_lines(text)
    first = lines[:LOG_LINES]
    if sum(1 for line in first if _LOG_LINE.match(line)) > 0.6 * len(first):
        return LOG
    table = _table_type(lines)
    if table is not None:
        return table
    return _prose_type(text, lines)


def _prose_type(text: str, lines: list[str]) -> str:
    marks = sum(1 for pattern in _MARKDOWN if pattern.search(text))
    said = sum(1 for line in lines if line.strip() and not _REMARK.match(line))
    code = not _MARKDOWN[0].search(text) and len(_CODE.findall(text)) > 0.25 * said
    if (_HEADING.search(text) and (marks or len(_HEADING.findall(text)) > 1) and not code) or marks >= 3:
        return MARKDOWN
    return CODE if code and len(lines) > 2 else PLAIN


def _by_magic(head: bytes) -> str | None:
    for mark, kind in _MAGIC:
        if head.startswith(mark):
            return kind
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(head[8:12])
    if head[4:8] == b"ftyp":
        return {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}.get(head[8:12], "video/mp4")
    if (
        head[:2] == b"BM"
        and len(head) >= 26
        and int.from_bytes(head[14:18], "little") in (12, 40, 52, 56, 64, 108, 124)
    ):
        return "image/bmp"
    if len(head) > 3 and head[0] == 0xFF and head[1] in (0xFB, 0xF3, 0xF2, 0xFA):
        return "audio/mpeg"
    return None


def _decoded(head: bytes) -> str | None:
    """The text that the bytes are; None where they are none. A character that the sample cuts is no reason."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data" or error.start < len(head) - 4:
            return None
        text = head[: error.start].decode()
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return None if controls * 50 > len(head) else text


def _json_type(start: str) -> str | None:
    if not _JSON_START.match(start):
        return None
    line, newline, rest = start.partition("\n")
    if newline and rest.lstrip()[:1] in ("{", "[") and _closes(line.strip()):
        following = rest.lstrip().partition("\n")
        if not following[1] or _closes(following[0].strip()):
            return JSON_LINES
    return JSON if _JSON_PREFIX.match(start[:4000]) else None


def _closes(line: str) -> bool:
    """Whether a line is one JSON object or array, as far as brackets tell."""
    return bool(line) and (line[0], line[-1]) in (("{", "}"), ("[", "]")) and bool(_JSON_PREFIX.match(line))


def _whole_lines(text: str) -> list[str]:
    lines = text[:SAMPLE].splitlines()
    return lines[:-1] if len(lines) > 2 and len(text) >= SAMPLE else lines


def _table_type(lines: list[str]) -> str | None:
    """CSV and TSV have as many delimiters in each line, and cells that are no sentences."""
    first = next((line for line in lines if line.strip()), "")
    if not any(mark in first for mark in "\t,;|"):
        return None
    rows = [_without_quoted(line) for line in lines[:60] if line.strip()]
    if len(rows) < 2:
        return None
    for mark, fewest in (("\t", 1), (",", 1), (";", 1), ("|", 2)):
        counts = [row.count(mark) for row in rows]
        wide = counts[0]
        if wide < fewest or sum(1 for count in counts if count == wide) < 0.9 * len(rows):
            continue
        if mark in ",;" and wide < 3 and (len(rows) < 3 or sum(row.count(mark + " ") for row in rows) > len(rows) / 2):
            continue
        if mark == "|" and rows[0].lstrip().startswith("|"):
            continue  # a table of Markdown
        return TSV if mark == "\t" else CSV
    return None


def _without_quoted(line: str) -> str:
    return re.sub(r'"[^"]*+"', "", line) if '"' in line else line
