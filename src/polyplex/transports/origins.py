"""URLs as an HTTP client needs them: what is of the origin that was configured, and what the request line says."""

from typing import Final
from urllib.parse import quote, urljoin, urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_KEPT: Final = "/%:@!$&'()*+,;=~-._"


def within_origin(base: str, reference: str) -> str | None:
    """A reference resolved against `base` (RFC 3986, 5.2); None where it is malformed or leads to another origin."""
    try:
        url = urljoin(base, reference)
        return url if origin(url) == origin(base) else None
    except ValueError:
        return None


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises `ValueError` for what is no URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0)


def request_path(url: str) -> str:
    """Path and query as they stand in a request line, with all else than visible ASCII escaped."""
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_KEPT)
    return f"{path}?{quote(parts.query, safe=_KEPT + '?')}" if parts.query else path


def authority(host: str, port: int) -> str:
    """Host and port, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_header(url: str) -> str:
    """The `Host` header for a URL: without its port where that is the scheme's own."""
    scheme, host, port = origin(url)
    return authority(host, port).removesuffix(f":{DEFAULT_PORTS.get(scheme)}")
