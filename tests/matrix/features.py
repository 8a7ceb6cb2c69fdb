"""What is tried with each pair: one check a feature. A check raises where something is not as it should be."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.matrix.stage import Pair

Check = Callable[[Pair], Awaitable[None]]
FEATURES: dict[str, "Feature"] = {}


def _everywhere(client: str, server: str) -> bool:
    return True


@dataclass(frozen=True)
class Feature:
    """A row: its heading in the document, one line that says what must hold, the check, and the transports (of client
    and server) that it exists on. `absent` is the check where the protocol has no such thing: nothing may break.
    """

    name: str
    group: str
    title: str
    holds: str
    check: Check
    applies: Callable[[str, str], bool] = _everywhere
    absent: Check | None = None


def feature(
    group: str,
    title: str,
    holds: str,
    *,
    applies: Callable[[str, str], bool] = _everywhere,
    absent: Check | None = None,
) -> Callable[[Check], Check]:
    """Registers a check under the name of its function."""

    def register(check: Check) -> Check:
        name = check.__name__
        assert name not in FEATURES
        FEATURES[name] = Feature(name, group, title, holds, check, applies, absent)
        return check

    return register


def client_on_http(client: str, server: str) -> bool:
    """Of Streamable HTTP on the client's side."""
    return client == "http"


def server_on_http(client: str, server: str) -> bool:
    """Of Streamable HTTP on the server's side."""
    return server == "http"
