"""Read an `envFile`: lines of `NAME=value`, with `export`, quotes and `#` comments as dotenv files have them."""

import re
from pathlib import Path

MAX_BYTES = 1024 * 1024
LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(?P<value>.*)")
ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\"": '"', r"\\": "\\"}


class EnvFileError(ValueError):
    """The file cannot be used; the text names the line and holds no value."""


def read(path: Path) -> dict[str, str]:
    """The variables of the file. Raises EnvFileError, also where it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise EnvFileError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise EnvFileError(f"{path} is larger than {MAX_BYTES // 1024} KiB")
    try:
        return parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise EnvFileError(f"{path} is not UTF-8 text") from None
    except EnvFileError as error:
        raise EnvFileError(f"{path}: {error}") from None


def parse(text: str) -> dict[str, str]:
    """The variables in a text; a later line wins. Raises EnvFileError with the line that is none."""
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise EnvFileError(f"line {number} is not NAME=value")
        variables[match["name"]] = _value(match["value"].strip(), number)
    return variables


def _value(text: str, number: int) -> str:
    if text[:1] not in ("'", '"'):
        return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    end = _closing(text)
    if end < 0 or text[end + 1 :].strip() and not text[end + 1 :].lstrip().startswith("#"):
        raise EnvFileError(f"line {number} has a quote that is not closed")
    inside = text[1:end]
    return inside if text[0] == "'" else re.sub(r'\\[nrt"\\]', lambda match: ESCAPES[match.group()], inside)


def _closing(text: str) -> int:
    """The offset of the quote that closes the one at the start, or -1."""
    if text[0] == "'":
        return text.find("'", 1)
    match = re.match(r'"(?:[^"\\]|\\.)*+"', text)
    return match.end() - 1 if match else -1
