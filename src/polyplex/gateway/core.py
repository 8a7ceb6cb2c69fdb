"""What every part of the gateway shares: the pool, the views, the clients."""

from pathlib import Path

from polyplex.config import Config, state_dir
from polyplex.downstream.session import Session
from polyplex.gateway.client import Client, info
from polyplex.gateway.views import View, Views
from polyplex.protocol.revisions import LATEST_MODERN, Era
from polyplex.upstreams.manifest import Manifests
from polyplex.upstreams.pool import Binding, Pool
from polyplex.upstreams.upstream import Events, State, Upstream
from polyplex.version import version


class Core:
    """State without behaviour of its own, but for finding things."""

    def __init__(self, config: Config, events: Events) -> None:
        self.config = config
        self.info = info("polyplex", "polyplex", version())
        self.pool = Pool(config, self.info, events, Manifests(manifest_folder(config)))
        self.views = Views(self.pool)
        self.clients: dict[str, Client] = {}
        session = Session(Era.MODERN, LATEST_MODERN, http=True, identifier="modern")
        self.modern = Client(session, Binding(Era.MODERN), {})

    def view(self, client: Client) -> View:
        """The client's view of the lists."""
        view = client.view
        if view is None or client.version != self.views.version:
            view = client.view = self.views.view(client.binding)
            client.version = self.views.version
        return view

    async def upstream(self, client: Client, server: str) -> Upstream:
        """The upstream of a server that serves this client. Raises `UpstreamUnavailable`."""
        upstream = await self.pool.resolve(server, client.binding)
        if upstream.state is State.IDLE:
            upstream.start()
        if upstream.peer is None:
            await upstream.ready()
            upstream = await self.pool.resolve(server, client.binding)
        client.upstreams[server] = upstream
        return upstream

    def keep_apart(self, upstream: Upstream, session: str) -> None:
        """A server has asked without saying whom; see `ServerPool.keep_apart`."""
        server = self.pool.servers[upstream.config.name]
        if not server.asks:
            server.keep_apart(upstream, session)
            for client in self.clients.values():
                client.upstreams.pop(upstream.config.name, None)


def manifest_folder(config: Config) -> Path:
    """Where the last known lists are kept: beside the state database."""
    state = config.options.state
    if state is not None and state.startswith("sqlite:"):
        return Path(state.removeprefix("sqlite:")).parent / "manifests"
    return state_dir() / "manifests"
