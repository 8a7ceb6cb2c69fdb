"""`polyplex config check`: what is in the configuration, and what is wrong with it. Starts nothing."""

from pathlib import Path

from polyplex.cli.arguments import Request
from polyplex.cli.configuration import describe, load_despite_unset
from polyplex.cli.diagnosis import address
from polyplex.cli.terminal import Terminal, write_result
from polyplex.store.open_store import open_store

WRONG = 2


def config_check(request: Request) -> int:
    """The exit code is 2 when the configuration cannot be used."""
    terminal = Terminal()
    config, unset = load_despite_unset(request.options.get("config"))
    describe(config, terminal)
    open_store(config.options.payloads, Path())  # which creates nothing
    width = max(map(len, config.servers), default=0)
    for name, server in config.servers.items():
        where = "not complete, see below" if name in unset else address(server)
        state = "" if server.enabled else "  (switched off)"
        write_result(f"server   {name:<{width}}  {where}{state}")
    for errors in unset.values():
        for error in errors:
            terminal.tell("error", str(error), "red")
    if not unset and config.files:
        terminal.tell("ok", "the configuration can be used; polyplex doctor tries its servers", "green")
    return WRONG if unset else 0
