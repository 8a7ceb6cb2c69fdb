"""Who may talk to the HTTP endpoint: `Host` and `Origin` checks against DNS rebinding (transports, "Security")."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - names no host, so it is none of ours


class OriginChecks:
    """Loopback names are always right; others only when configured. `*` allows any."""

    def __init__(self, bound: Iterable[str], hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._any_host = "*" in hosts
        self._hosts = {host.lower() for host in hosts} | LOOPBACK | (set(bound) - EVERYWHERE)
        self._any_origin = "*" in origins
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._seen_hosts: set[str] = set()

    def usual(self, headers: Mapping[str, str]) -> bool:
        """True for the common case: a host that has been found right before, and no browser."""
        return headers.get("host") in self._seen_hosts and "origin" not in headers

    def host(self, value: str | None) -> bool:
        """True for a `Host` header that names us."""
        if self._any_host or value in self._seen_hosts:
            return True
        if value is None:
            return False
        try:
            name = urlsplit(f"//{value}").hostname
        except ValueError:
            return False
        if name is None or (name not in self._hosts and value.lower() not in self._hosts):
            return False
        if len(self._seen_hosts) < 64:
            self._seen_hosts.add(value)
        return True

    def origin(self, value: str | None) -> bool:
        """True where there is no `Origin` (no browser) or one that is ours or configured."""
        if value is None or self._any_origin:
            return True
        if value.lower() in self._origins:
            return True
        try:
            parts = urlsplit(value)
            return parts.scheme in ("http", "https") and parts.hostname in self._hosts
        except ValueError:
            return False
