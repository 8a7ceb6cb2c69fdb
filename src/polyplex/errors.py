"""Every error polyplex raises on purpose.

PolyplexError
  ConfigError              the configuration is wrong: file, line and key are named
  MissingExtraError        an optional package is needed that is not installed
  ProtocolError            a message breaks the protocol
    LocalProtocolError     we would have sent it
    RemoteProtocolError    the peer sent it
  RpcError                 a JSON-RPC error to answer with (code, message, data)
  ExportError              a model's call cannot be read: no such tool, or arguments that are no object
  SearchUnavailable        the search index is not there yet
  UpstreamError            a server behind polyplex failed
    UpstreamUnavailable    it is not connected; nothing was sent
    UpstreamTimeout        it did not answer in time
    UpstreamRefused        it will not carry the request out
    UpstreamBusy           it does not take the request now; nothing ran
    UpstreamLost           the connection broke after the request had been sent
  PayloadError             a stored result cannot be kept or read
    PayloadMissing         there is none, or none for this caller, or it has expired
    PayloadRefused         it is larger than may be kept
    PayloadQueryError      what was asked of it cannot be answered
    PayloadStoreFailed     the disk or the object store does not do its part
"""

from pathlib import Path


class PolyplexError(Exception):
    """Base of all errors that polyplex raises on purpose."""


class ConfigError(PolyplexError):
    """The configuration is wrong. `str()` gives `file:line: key: what and what to do`."""

    def __init__(self, message: str, *, file: Path | None = None, line: int = 0, key: str = "") -> None:
        self.message, self.file, self.line, self.key = message, file, line, key
        where = f"{file}:{line}" if file and line else str(file or "")
        super().__init__(": ".join(part for part in (where, key, message) if part))


class MissingExtraError(PolyplexError):
    """Something needs a package that is not installed. `str()` says what, and the command that installs it."""

    def __init__(self, what: str, extra: str, reason: str = "") -> None:
        because = f" ({reason})" if reason else ""
        super().__init__(f"{what} is not available{because}: pip install 'polyplex[{extra}]'")
        self.extra = extra


class ProtocolError(PolyplexError):
    """A message breaks the protocol."""


class LocalProtocolError(ProtocolError):
    """We were about to send something the protocol forbids."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something the protocol forbids.

    `code` is the JSON-RPC code to answer with, `id` the raw JSON of the request id where it could be read.
    """

    def __init__(self, message: str, *, code: int = -32600, id: bytes = b"null") -> None:
        super().__init__(message)
        self.code, self.id = code, id


class RpcError(PolyplexError):
    """A JSON-RPC error response: `code`, `message` and raw JSON `data`."""

    def __init__(self, code: int, message: str, data: bytes | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class ExportError(PolyplexError):
    """A call that a model made cannot be read: it names no exported tool, or its arguments are no JSON object."""


class SearchUnavailable(PolyplexError):
    """There is no search index yet: it is being built, or could not be."""


class UpstreamError(PolyplexError):
    """A server behind polyplex failed. `server` is its configured name."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(f"{server}: {message}")
        self.server, self.message = server, message


class UpstreamUnavailable(UpstreamError):
    """The server is not connected; the request was never sent."""


class UpstreamTimeout(UpstreamError):
    """The server did not answer in time."""


class UpstreamRefused(UpstreamError):
    """The server answered that it will not carry the request out; sending it again would not help."""


class UpstreamBusy(UpstreamError):
    """The server answered that it does not take the request now; nothing ran, and it may be sent again later."""


class UpstreamLost(UpstreamError):
    """The connection broke after the request was sent; whether it ran is unknown."""


class PayloadError(PolyplexError):
    """A stored result cannot be kept or read. `str()` says what and what to do."""


class PayloadMissing(PayloadError):
    """There is no such payload for this caller: it expired, made room, or never existed."""


class PayloadRefused(PayloadError):
    """The payload is larger than may be kept."""


class PayloadQueryError(PayloadError):
    """What was asked of a payload cannot be answered: a range, a path or a pattern that is wrong or too much."""


class PayloadStoreFailed(PayloadError):
    """The disk or the object store failed, is full, or cannot be reached."""
