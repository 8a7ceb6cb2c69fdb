"""The configuration as the commands use it: found, checked for polyplex itself, and named to the user."""

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from polyplex.cli.terminal import Terminal
from polyplex.config import Config, ServerConfig, load_config
from polyplex.errors import ConfigError

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
PATHS: Final = ("/mcp", "/sse")
PLACEHOLDER: Final = "http://unset.invalid"  # may stand for an address as well as for any text
_UNSET: Final = re.compile(r"the environment variable (\w+) is not set")
_NAMED: Final = re.compile(r'(?:mcpServers|servers)(?:\.([A-Za-z_$][\w$-]*)|\["(.*?)"\])')


def load(file: str | None, address: tuple[str, int] | None = None) -> Config:
    """Load the configuration without what would make polyplex connect to itself. Raises `ConfigError`."""
    return without_self(load_config(file), address)


def without_self(config: Config, address: tuple[str, int] | None = None) -> Config:
    """Leave out servers that are this polyplex: a client's file that names it may be the very file it reads.

    `address` is where it is about to listen. A child that is given a configuration of its own is another polyplex.
    """
    own = [name for name, server in config.servers.items() if _is_self(server, address)]
    if not own:
        return config
    kept = {name: server for name, server in config.servers.items() if name not in own}
    return msgspec.structs.replace(config, servers=kept)


def _is_self(server: ServerConfig, address: tuple[str, int] | None) -> bool:
    if server.kind == "stdio":
        words = (Path(server.command).name, *server.args)
        serves = any(pair == ("polyplex", "serve") for pair in pairwise(words))
        return serves and not any(word.startswith("--config") for word in words)
    if address is None:
        return False
    parts = urlsplit(server.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    hosts = {address[0], *LOOPBACK} if address[0] in (*LOOPBACK, "0.0.0.0", "::") else {address[0]}  # noqa: S104
    return port == address[1] and parts.hostname in hosts and parts.path.rstrip("/") in PATHS


def load_despite_unset(file: str | None) -> tuple[Config, dict[str, list[ConfigError]]]:
    """Load with a placeholder in place of each unset variable, and the errors of these by server ("" for elsewhere).

    Raises `ConfigError` for any other mistake, and where the placeholder cannot stand.
    """
    environ = dict(os.environ)
    unset: dict[str, list[ConfigError]] = {}
    while True:
        try:
            config = load_config(file, environ=environ)
        except ConfigError as error:
            variable = _UNSET.search(error.message)
            if variable is None or variable[1] in environ:
                raise _cause(error, unset) from None
            environ[variable[1]] = PLACEHOLDER
            named = _NAMED.match(error.key)
            unset.setdefault("" if named is None else named[1] or named[2], []).append(error)
        else:
            return without_self(config), unset


def _cause(error: ConfigError, unset: dict[str, list[ConfigError]]) -> ConfigError:
    """The mistake itself; where a placeholder cannot stand, the unset variable that it stands for."""
    everything = (earlier for errors in unset.values() for earlier in errors)
    return next((earlier for earlier in everything if earlier.key == error.key), error)


def shown_path(path: Path, here: str = "") -> str:
    """A path as people write it: relative to the current folder (after `here`), or to their home."""
    for folder, prefix in ((Path.cwd(), here), (Path(os.environ.get("HOME", "/")), "~/")):
        if path.is_relative_to(folder) and folder != Path("/"):
            return f"{prefix}{path.relative_to(folder)}"
    return str(path)


def warn(config: Config, terminal: Terminal) -> None:
    """Say what is wrong with the configuration but does not stop anything; and where it was looked for in vain."""
    if config.servers:
        for warning in config.warnings:
            terminal.tell("warning", warning, "yellow")
    else:
        describe(config, terminal)


def describe(config: Config, terminal: Terminal) -> None:
    """Say which file is used and how many servers it holds, or where none was found, and its warnings."""
    if config.files:
        enabled = sum(server.enabled for server in config.servers.values())
        off = len(config.servers) - enabled
        switched_off = f", {off} more switched off" if off else ""
        files = ", ".join(map(shown_path, config.files))
        terminal.say(f"config   {files}: {count(enabled, 'server')}{switched_off}")
    else:
        terminal.say("config   none found; looked for")
        for place in config.searched:
            terminal.say(f"           {shown_path(place, './')}")
    for warning in config.warnings:
        terminal.tell("warning", warning, "yellow")


def count(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
