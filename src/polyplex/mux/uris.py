"""Public URIs: opaque strings, marked with their server so that equal URIs of two servers both stay reachable.

`file:///a` of the server `docs` is offered as `docs+file:///a`: still a URI for strict parsers, and a template stays a
template. `ui://` keeps its scheme, since hosts of MCP Apps look for it: `ui://docs/...`.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final, NewType

PublicUri = NewType("PublicUri", str)
LocalUri = NewType("LocalUri", str)

_UI: Final = "ui://"
_ILLEGAL: Final = re.compile(r"[^a-z0-9.-]+")
_LOOKS_HASHED: Final = re.compile(r".*-[0-9a-f]{6}")
_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")


def uri_label(server: str) -> str:
    """The server's part of its public URIs: legal in a URI scheme (RFC 3986, 3.1) and unique to the server name."""
    slug = _ILLEGAL.sub("-", server.lower()).strip("-.")
    if slug == server and slug[:1].isalpha() and not _LOOKS_HASHED.fullmatch(slug):
        return slug
    digest = hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{slug}-{digest}" if slug[:1].isalpha() else f"s-{slug}-{digest}".replace("--", "-")


def public_uri(label: str, local: str) -> PublicUri:
    """The URI a client sees for a server's own URI or URI template."""
    if local[:5].lower() == _UI:
        return PublicUri(f"{local[:5]}{label}/{local[5:]}")
    return PublicUri(f"{label}+{local}")


def split_uri(uri: str, labels: dict[str, str]) -> tuple[str, LocalUri] | None:
    """The server and its own URI behind a public URI, or None where no known server is named.

    `labels` maps labels to server names.
    """
    if uri[:5].lower() == _UI:
        label, slash, rest = uri[5:].partition("/")
        server = labels.get(label.lower())
        return (server, LocalUri(uri[:5] + rest)) if server is not None and slash else None
    label, plus, rest = uri.partition("+")
    server = labels.get(label.lower()) if plus else None
    return None if server is None else (server, LocalUri(rest))


class Template:
    """A URI template (RFC 6570) reduced to what routing needs: its literal parts, in order. Matching is linear."""

    __slots__ = ("literals", "text", "weight")

    def __init__(self, text: str) -> None:
        self.text = text
        self.literals = _EXPRESSION.split(text)
        self.weight = sum(map(len, self.literals))

    def matches(self, uri: str) -> bool:
        """True where the URI can have come from the template."""
        first, *middle = self.literals
        if not middle:
            return uri == first
        last = middle.pop()
        if not uri.startswith(first) or not uri.endswith(last):
            return False
        position, end = len(first), len(uri) - len(last)
        for literal in middle:
            found = uri.find(literal, position, end)
            if found < 0:
                return False
            position = found + len(literal)
        return position <= end


def best_template(templates: Iterable[tuple[Template, str]], uri: str) -> list[str]:
    """The servers whose templates match, those with the longest literal text only."""
    hits = [(template.weight, server) for template, server in templates if template.matches(uri)]
    top = max((weight for weight, _ in hits), default=0)
    return list(dict.fromkeys(server for weight, server in hits if weight == top))
