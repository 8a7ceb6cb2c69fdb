"""What `/metrics` shows."""

from polyplex.gateway.core import Core
from polyplex.telemetry import Registry


class Metrics:
    """Counters and gauges of a gateway."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._registry = Registry()
        self._up = self._registry.gauge(
            "polyplex_upstream_up", "1 while a session with the server is open.", ("server",)
        )
        self._restarts = self._registry.gauge(
            "polyplex_upstream_restarts", "Sessions with the server that were lost.", ("server",)
        )
        self._sessions = self._registry.gauge("polyplex_client_sessions", "Legacy client sessions that are open.")
        self._registry.before_render(self._refresh)

    def _refresh(self) -> None:
        self._sessions.labels().value = len(self._core.clients)
        for name, server in self._core.pool.servers.items():
            upstreams = server.all()
            self._up.labels(name).value = float(any(upstream.connection is not None for upstream in upstreams))
            self._restarts.labels(name).value = float(sum(upstream.restarts for upstream in upstreams))

    def render(self) -> bytes:
        """In the Prometheus text format."""
        return self._registry.render().encode()
