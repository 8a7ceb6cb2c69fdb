"""What the servers of a configuration offer, as the commands judge it."""

from collections.abc import Sequence

from polyplex.catalog.lint.facts import Server, read_server
from polyplex.cli.arguments import UsageError, suggestion
from polyplex.cli.commands import Command
from polyplex.gateway.app import Gateway


def offered_by(gateway: Gateway) -> list[Server]:
    """The lists of every server that is known, in the order of the configuration."""
    upstreams = gateway.core.view(gateway.core.modern.plain).upstreams
    return [
        read_server(
            upstream.config.name,
            upstream.lists,
            instructions=(upstream.peer.instructions or "") if upstream.peer is not None else "",
            set_aside=upstream.set_aside,
        )
        for upstream in upstreams
    ]


def check_names(wanted: Sequence[str], known: Sequence[str], command: Command) -> None:
    """Raises `UsageError` for a server that the configuration does not have."""
    for name in wanted:
        if name not in known:
            raise UsageError(f"there is no server {name!r} in the configuration{suggestion(name, known)}", command)
