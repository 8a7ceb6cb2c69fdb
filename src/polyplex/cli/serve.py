"""`polyplex serve`: the gateway with its endpoint, and what people are told while it runs."""

import asyncio
import errno
import logging
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from polyplex.cli.arguments import Request, UsageError
from polyplex.cli.commands import DEFAULT_ADDRESS, SERVE
from polyplex.cli.configuration import count, describe, load
from polyplex.cli.terminal import Terminal
from polyplex.config import Config
from polyplex.telemetry import configure_logging
from polyplex.version import version

if TYPE_CHECKING:
    from polyplex.cli.progress import Outcome
    from polyplex.gateway.app import Gateway

CLIENT_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1
UNUSABLE_ADDRESS: Final = 2
INTERRUPTED: Final = 130
EXPOSED: Final = "whoever reaches this address may call every tool: there is no authentication yet"
UNNAMED: Final = "requests that name this machine in Host are refused until polyplex.allowedHosts has that name"
_UPSTREAMS_LOG: Final = logging.getLogger("polyplex.upstreams")
_IN_USE: Final = (
    "port {port} of {host} is in use, perhaps by another polyplex; choose another with --http {host}:{next}"
)
_NOT_OURS: Final = "{host} is no address of this machine; use 127.0.0.1, or 0.0.0.0 for every address"
_FORBIDDEN: Final = "port {port} needs more rights than polyplex has; choose one above 1023 with --http {host}:7332"


def serve(request: Request) -> int:
    """Serve until a signal, or (stdio) until the client goes."""
    if request.has("stdio") and request.has("http"):
        raise UsageError("--http and --stdio exclude each other", SERVE)
    address = None if request.has("stdio") else read_address(request.options.get("http", DEFAULT_ADDRESS))
    terminal = Terminal()
    verbose = request.has("verbose")
    configure_logging(request.options.get("log-level") or ("debug" if verbose else None), stream=terminal)  # pyright: ignore[reportArgumentType]
    config = load(request.options.get("config"), address)
    terminal.say(f"{terminal.paint('polyplex', 'bold')} {version()}")
    describe(config, terminal)
    announcer = Announcer(terminal, config, verbose)
    from polyplex.gateway.serving import new_event_loop, serve_http, serve_stdio

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        if address is None:
            return _exit_code(runner.run(serve_stdio(config, announcer.stdio_ready)))
        host, port = address
        try:
            return _exit_code(runner.run(serve_http(config, host, port, announcer.http_ready)))
        except OSError as error:
            explanation = explain_address(error, host, port)
            if explanation is None:
                raise
            terminal.tell("error", explanation, "red")
            return UNUSABLE_ADDRESS


def _exit_code(caught: signal.Signals | None) -> int:
    """Being told to stop is no failure; being interrupted is what a shell wants to hear of."""
    return INTERRUPTED if caught is signal.SIGINT else 0


def read_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[IPv6]:PORT`, `:PORT` or `PORT`. Raises `UsageError`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or DEFAULT_ADDRESS.partition(":")[0]
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--http takes HOST:PORT, such as {DEFAULT_ADDRESS}; not {text!r}", SERVE)
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    import ipaddress

    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def explain_address(error: OSError, host: str, port: int) -> str | None:
    """Why an address cannot be listened at and what to do; None where the error is about something else."""
    if error.errno == errno.EADDRINUSE:
        text = _IN_USE
    elif error.errno in (errno.EACCES, errno.EPERM):
        text = _FORBIDDEN
    elif error.errno == errno.EADDRNOTAVAIL or type(error).__name__ == "gaierror":
        text = _NOT_OURS
    else:
        return None
    shown = f"[{host}]" if ":" in host else host
    return text.format(host=shown, port=port, next=port + 1 if port < 65535 else port - 1)


class Announcer:
    """Tells where the endpoint is, and follows the start of the servers."""

    def __init__(self, terminal: Terminal, config: Config, verbose: bool) -> None:
        self._terminal = terminal
        self._config = config
        self._verbose = verbose
        self._task: asyncio.Task[None] | None = None

    def http_ready(self, gateway: "Gateway", addresses: list[tuple[str, int]]) -> None:
        """The endpoint listens."""
        terminal = self._terminal
        urls = [f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp" for host, port in addresses]
        for url in urls:
            terminal.say(f"serving  {terminal.paint(url, 'cyan')}")
        here = urls[0].replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        entry = f'{{"mcpServers": {{"polyplex": {{"url": "{here}"}}}}}}'
        terminal.say(f"client   {entry}")
        if not all(is_loopback(host) for host, _ in addresses):
            terminal.tell("warning", EXPOSED, "yellow")
            if not self._config.options.allowed_hosts:
                terminal.tell("", UNNAMED)
        self._follow(self._started(gateway))

    def stdio_ready(self, gateway: "Gateway") -> None:
        """The endpoint reads standard input."""
        self._terminal.tell("serving", "one client on stdin and stdout; servers start when it says hello")
        self._follow(self._after_hello(gateway))

    def _follow(self, start: Coroutine[Any, Any, None]) -> None:
        if not self._verbose:
            _UPSTREAMS_LOG.setLevel(logging.ERROR)  # until all have been tried, the report says it better
        self._task = asyncio.get_running_loop().create_task(start, name="start-up report")
        self._task.add_done_callback(lambda _: _UPSTREAMS_LOG.setLevel(logging.NOTSET))

    async def _after_hello(self, gateway: "Gateway") -> None:
        """Servers start with the capabilities of the client, so not before it has said hello."""
        pool = gateway.core.pool
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                while all(server.base is None for server in pool.servers.values()):  # noqa: ASYNC110 - told by nobody
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return
        await self._started(gateway)

    async def _started(self, gateway: "Gateway") -> None:
        # Not needed before the endpoint listens, so it does not delay that.
        from polyplex.cli.progress import StartReport, watch_start

        if not gateway.core.pool.servers:
            if self._config.files or self._config.searched:
                self._terminal.tell("servers", "none yet; polyplex --help shows what to write into the configuration")
            return
        report = StartReport(self._terminal, list(gateway.core.pool.servers))
        outcomes = await watch_start(gateway.core.pool, report, self._terminal)
        if not gateway.draining:
            self._conclude(outcomes, gateway)

    def _conclude(self, outcomes: "list[Outcome]", gateway: "Gateway") -> None:
        failed = [outcome for outcome in outcomes if outcome.reason is not None]
        asleep = len(gateway.core.pool.servers) - len(outcomes)
        ready = len(outcomes) - len(failed)
        tools = sum(len(outcome.upstream.lists.get("tools", ())) for outcome in outcomes)
        parts = [f"{ready} of {count(len(gateway.core.pool.servers), 'server')} up, {count(tools, 'tool')}"]
        if asleep:
            parts.append(f"{asleep} start on first use")
        if failed:
            parts.append("failed ones are tried again; polyplex doctor says what to do")
        self._terminal.tell("ready", "; ".join(parts))
