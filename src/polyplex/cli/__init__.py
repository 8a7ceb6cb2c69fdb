"""The command line. One module a command; each imports what it needs when it runs."""

import sys


def run() -> None:
    """Placeholder until the full command line lands: serve only."""
    import asyncio

    from polyplex.config import load_config
    from polyplex.gateway.serving import new_event_loop, serve_http, serve_stdio
    from polyplex.telemetry import configure_logging

    configure_logging()
    args = sys.argv[1:]
    config = load_config(args[args.index("--config") + 1] if "--config" in args else None)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        if "--stdio" in args:
            runner.run(serve_stdio(config, lambda g: None))
        else:
            host, port = (args[args.index("--http") + 1] if "--http" in args else "127.0.0.1:7332").rsplit(":", 1)
            runner.run(serve_http(config, host, int(port), lambda g, a: print("listening", a, file=sys.stderr)))
