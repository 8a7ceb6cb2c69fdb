"""Load a configuration: find the file, read it, expand variables, check it, and say where anything is wrong."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from polyplex.config import unbuilt
from polyplex.config.bind import as_object, bind, keys_of
from polyplex.config.expand import Variables, expand_tree
from polyplex.config.jsonc import MAX_BYTES, Document, KeyPath, parse
from polyplex.config.model import (
    RESERVED_SERVER,
    Config,
    ConfigFile,
    GatewayOptions,
    ServerConfig,
    ServerEntry,
    ServerOptions,
)
from polyplex.config.paths import config_dir, home
from polyplex.config.servers import build_server, check_name, hint, is_polyplex, resolve
from polyplex.config.source import Source, quoted, suggestion
from polyplex.errors import ConfigError

# Folders in which editors keep the configuration of the workspace that contains them.
EDITOR_FOLDERS = (".vscode", ".cursor")
SERVER_KEYS = ("mcpServers", "servers")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
STATE_SCHEMES = ("sqlite:", "redis://", "rediss://")


def load_config(path: str | Path | None, *, environ: Mapping[str, str] | None = None) -> Config:
    """Load a configuration file, or the first found in the usual places; none found gives an empty configuration.

    Raises ConfigError with file, line and key.
    """
    environ = os.environ if environ is None else environ
    if path is None:
        searched = search_places(environ)
        # Unlike Path.is_file, this is False, not an error, in a folder that may not be entered.
        found = next((place for place in searched if os.path.isfile(place)), None)  # noqa: PTH113
        if found is None:
            return Config(searched=searched)
        return msgspec.structs.replace(_load_file(found, environ), searched=searched)
    text = str(path)
    return _load_file(home(environ) / text[2:] if text.startswith("~/") else Path(text), environ)


def load_config_dict(
    content: Mapping[str, Any], *, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> Config:
    """Load a configuration given as a dict; its relative paths start in `folder`, by default the working folder."""
    source = Source(None, folder or Path.cwd(), Document(None))
    return _build(dict(content), source, os.environ if environ is None else environ)


def search_places(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a configuration is looked for when none is named, in this order."""
    here = Path.cwd()
    return (
        here / "polyplex.json",
        here / ".mcp.json",
        here / ".vscode" / "mcp.json",
        config_dir(environ) / "config.json",
    )


def _load_file(path: Path, environ: Mapping[str, str]) -> Config:
    document = parse(_read(path), path)
    folder = path.absolute().parent
    source = Source(path, folder.parent if folder.name in EDITOR_FOLDERS else folder, document)
    return msgspec.structs.replace(_build(document.value, source, environ), files=(path.absolute(),))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the configuration: {error.strerror}", file=path) from None


def _build(value: object, source: Source, environ: Mapping[str, str]) -> Config:
    root = as_object(value, (), source)
    _warn_unknown_root(root, source)
    variables = Variables.of(environ, source.folder, home(environ))
    options = _options(root.get("polyplex"), variables, source)
    servers = _servers(root, options, variables, source)
    for name in options.servers:
        if name not in servers:
            source.warn(("polyplex", "servers", name), f"there is no server of this name{suggestion(name, servers)}")
    return Config(servers=servers, options=options, warnings=tuple(source.warnings))


def _warn_unknown_root(root: dict[str, object], source: Source) -> None:
    """Name unknown root keys: in one warning, since a file of another client may hold many of its own."""
    known, options = keys_of(ConfigFile), keys_of(GatewayOptions)
    hints = {
        key: f"; if it is for polyplex, it belongs in polyplex.{key}" if key in options else suggestion(key, known)
        for key in root
        if key not in known
    }
    for key, told in hints.items():
        if told:
            source.warn((key,), f"unknown key, ignored{told}")
    others = [key for key, told in hints.items() if not told]
    if others:
        names = ", ".join(quoted(key) for key in others[:10]) + (", ..." if len(others) > 10 else "")
        source.warn((others[0],), f"unknown keys, ignored: {names}" if len(others) > 1 else "unknown key, ignored")


def _options(raw: object, variables: Variables, source: Source) -> GatewayOptions:
    path: KeyPath = ("polyplex",)
    if raw is None:
        return GatewayOptions()
    expanded = expand_tree(raw, path, variables, source)
    options = bind(GatewayOptions, expanded, path, source)
    unbuilt.report(expanded, path, source)
    servers = {
        name: _server_options(server, (*path, "servers", name), variables, source)
        for name, server in options.servers.items()
    }
    return _resolved(msgspec.structs.replace(options, servers=servers), path, variables, source)


def _server_options(options: ServerOptions, path: KeyPath, variables: Variables, source: Source) -> ServerOptions:
    """Resolve the paths, check the names of tools, and keep the hard limit of a call above its time-out."""
    for tool, told in options.tools.items():
        if told.name is not None and not TOOL_NAME.fullmatch(told.name):
            found = f"found {quoted(told.name[:80])}"
            key = (*path, "tools", tool, "name")
            raise source.error(key, f"a tool's name has 1 to 64 letters, digits, _ and -; {found}")
    if options.ca_file is not None:
        ca_file = resolve(options.ca_file, source.folder, _home(variables))
        options = msgspec.structs.replace(options, ca_file=str(ca_file))
    if options.max_timeout_seconds < options.timeout_seconds:
        if options.max_timeout_seconds != ServerOptions().max_timeout_seconds:
            source.warn((*path, "maxTimeoutSeconds"), "is less than timeoutSeconds, which is used for both")
        options = msgspec.structs.replace(options, max_timeout_seconds=options.timeout_seconds)
    return options


def _resolved(options: GatewayOptions, path: KeyPath, variables: Variables, source: Source) -> GatewayOptions:
    """Make the paths of files absolute."""
    if options.state is not None and not options.state.startswith(STATE_SCHEMES):
        raise source.error((*path, "state"), "expected sqlite:PATH or redis://HOST")
    return msgspec.structs.replace(
        options,
        policy=_absolute(options.policy, "", variables, source),
        state=_absolute(options.state, "sqlite:", variables, source),
        payloads=msgspec.structs.replace(
            options.payloads, store=_absolute(options.payloads.store, "file:", variables, source)
        ),
    )


def _absolute(text: str | None, scheme: str, variables: Variables, source: Source) -> str | None:
    """The text with the path after `scheme` made absolute; text of another scheme as it is."""
    if text is None or not text.startswith(scheme) or text.startswith(f"{scheme}//"):
        return text
    return scheme + str(resolve(text.removeprefix(scheme), source.folder, _home(variables)))


def _home(variables: Variables) -> Path:
    return Path(variables.places["userHome"])


def _servers(
    root: dict[str, object], options: GatewayOptions, variables: Variables, source: Source
) -> dict[str, ServerConfig]:
    servers: dict[str, ServerConfig] = {}
    present = [key for key in SERVER_KEYS if root.get(key) is not None]
    if len(present) > 1:
        source.warn(("servers",), 'both "mcpServers" and "servers" are used; "mcpServers" wins where a name is in both')
    for key in present:
        for name, raw in as_object(root[key], (key,), source).items():
            path = (key, name)
            check_name(name, path, source)
            if name == RESERVED_SERVER and is_polyplex(raw):
                source.warn(path, "left out: it is polyplex; to mount another polyplex, give it another name")
            elif name == RESERVED_SERVER:
                raise source.error(path, f"{quoted(name)} is the server of polyplex's own tools; choose another name")
            elif name not in servers:
                servers[name] = _server(name, raw, options.servers.get(name, ServerOptions()), variables, source, path)
    return servers


def _server(
    name: str, raw: object, options: ServerOptions, variables: Variables, source: Source, path: KeyPath
) -> ServerConfig:
    disabled = as_object(raw, path, source).get("disabled") is True or not options.enabled
    # A server that is switched off may lack the variables that it would need.
    expanded = expand_tree(raw, path, variables, source, strict=not disabled)
    entry = bind(ServerEntry, expanded, path, source, hint)
    if disabled or entry.disabled:
        options = msgspec.structs.replace(options, enabled=False)
    return build_server(name, entry, options, path, source, _home(variables))
