"""What is measured: each front is a gateway (or none) between the loader and the upstream."""

import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import peers
from configs import http_server, nginx_program, stdio_server, write_config, write_nginx_config
from processes import Pinning, free_port, program


@dataclass(frozen=True, slots=True)
class Site:
    """Ports of the upstreams, the pinning, and the command that is polyplex."""

    direct_port: int
    behind_port: int
    era_ports: dict[str, int]
    pinning: Pinning
    polyplex: list[str]

    def stdio_upstream(self) -> list[str]:
        """The stdio upstream as a gateway starts it: beside the loader, on core 0."""
        command = [program("upstream"), "--stdio"]
        return ["taskset", "-c", "0", *command] if self.pinning.cores else command


@dataclass(frozen=True, slots=True)
class Front:
    """One way to the upstream, and what it is compared with."""

    name: str
    side: str  # how the loader reaches it: http or stdio
    make: Callable[[Site, int], list[str]]  # (site, port) -> command
    era: str = "legacy"
    peer: bool = False
    compared: str = ""  # for a peer the polyplex front, for a bridging one the front of one era it is compared with
    stretch: float = 1.0  # seconds are multiplied by this: slow fronts need more to have enough calls
    skipped_cells: frozenset[str] = field(default_factory=lambda: frozenset[str]())


def nginx(site: Site, port: int) -> list[str]:
    """nginx as a plain reverse proxy."""
    return [nginx_program(), "-c", str(write_nginx_config(port, site.behind_port))]


def polyplex_over_http(site: Site, port: int) -> list[str]:
    """polyplex over HTTP in front of a trusted HTTP upstream."""
    config = write_config("http-http", {"up": http_server(site.behind_port)}, bare=True)
    return [*site.polyplex, "serve", "--config", config, "--http", f"127.0.0.1:{port}"]


def polyplex_guarded(site: Site, port: int) -> list[str]:
    """The same with an untrusted upstream and the guards at their defaults."""
    config = write_config("guarded", {"up": http_server(site.behind_port)}, trusted=False, bare=True)
    return [*site.polyplex, "serve", "--config", config, "--http", f"127.0.0.1:{port}"]


def polyplex_over_stdio_upstream(site: Site, port: int) -> list[str]:
    """polyplex over HTTP in front of a trusted stdio upstream."""
    config = write_config("http-stdio", {"up": stdio_server(site.stdio_upstream())}, bare=True)
    return [*site.polyplex, "serve", "--config", config, "--http", f"127.0.0.1:{port}"]


def polyplex_on_stdio(site: Site, _port: int) -> list[str]:
    """polyplex as the loader's child, in front of a trusted HTTP upstream."""
    config = write_config("stdio-http", {"up": http_server(site.behind_port)}, bare=True)
    return [*site.polyplex, "serve", "--config", config, "--stdio"]


def polyplex_bridging(upstream: str) -> Callable[[Site, int], list[str]]:
    """polyplex over HTTP in front of an upstream that speaks one era only."""

    def make(site: Site, port: int) -> list[str]:
        config = write_config(f"to-{upstream}", {"up": http_server(site.era_ports[upstream])}, bare=True)
        return [*site.polyplex, "serve", "--config", config, "--http", f"127.0.0.1:{port}"]

    return make


def mcp_proxy(site: Site, port: int) -> list[str]:
    """mcp-proxy in front of a stdio upstream."""
    return peers.mcp_proxy(port, site.stdio_upstream())


def fastmcp(shape: str, side: str) -> Callable[[Site, int], list[str]]:
    """FastMCP in front of an HTTP or a stdio upstream."""

    def make(site: Site, port: int) -> list[str]:
        url = f"http://127.0.0.1:{site.behind_port}/mcp"
        return peers.fastmcp(port, shape, [url] if side == "http" else site.stdio_upstream())

    return make


HTTP_HTTP = "polyplex http->http"
HTTP_HTTP_MODERN = "polyplex http->http modern"
HTTP_STDIO = "polyplex http->stdio"
STDIO_HTTP = "polyplex stdio->http"
MODERN_TO_LEGACY = "polyplex modern->legacy"
LEGACY_TO_MODERN = "polyplex legacy->modern"
GUARDED = "polyplex guarded"
NGINX = "nginx"
SLOW = frozenset({"small c64"})
FRONTS = [
    Front(NGINX, "http", nginx),
    Front(HTTP_HTTP, "http", polyplex_over_http),
    Front(HTTP_HTTP_MODERN, "http", polyplex_over_http, era="modern"),
    Front(MODERN_TO_LEGACY, "http", polyplex_bridging("legacy"), era="modern", compared=HTTP_HTTP_MODERN),
    Front(LEGACY_TO_MODERN, "http", polyplex_bridging("modern"), compared=HTTP_HTTP),
    Front(HTTP_STDIO, "http", polyplex_over_stdio_upstream),
    Front(STDIO_HTTP, "stdio", polyplex_on_stdio),
    Front(GUARDED, "http", polyplex_guarded),
    Front("mcp-proxy http->stdio", "http", mcp_proxy, peer=True, compared=HTTP_STDIO, stretch=1.5),
    Front(
        "fastmcp http->http",
        "http",
        fastmcp("default", "http"),
        peer=True,
        compared=HTTP_HTTP,
        stretch=2.5,
        skipped_cells=SLOW,
    ),
    Front(
        "fastmcp http->http reuse",
        "http",
        fastmcp("reuse", "http"),
        peer=True,
        compared=HTTP_HTTP,
        stretch=1.5,
        skipped_cells=SLOW,
    ),
    Front(
        "fastmcp http->stdio",
        "http",
        fastmcp("default", "stdio"),
        peer=True,
        compared=HTTP_STDIO,
        stretch=1.5,
        skipped_cells=SLOW,
    ),
]


def make_site(pinning: Pinning, polyplex: str) -> Site:
    """A site on free ports; `polyplex` is a command line, empty for the one of this interpreter."""
    command = shlex.split(polyplex) if polyplex else [sys.executable, "-m", "polyplex"]
    found = shutil.which(command[0])
    return Site(
        free_port(),
        free_port(),
        {"legacy": free_port(), "modern": free_port()},
        pinning,
        [found or command[0], *command[1:]],
    )
