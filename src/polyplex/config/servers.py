"""From an entry of `mcpServers` to a ServerConfig: which kind of server it is, where it is, and what it is given."""

import re
from pathlib import Path, PurePath
from typing import cast
from urllib.parse import urlsplit

from polyplex.config import envfile
from polyplex.config.bind import keys_of
from polyplex.config.jsonc import KeyPath
from polyplex.config.model import MAX_SERVER_NAME, Kind, ServerConfig, ServerEntry, ServerOptions
from polyplex.config.source import Source, suggestion

# The spellings of `type` in the configuration files of clients, in lower case without separators.
KINDS: dict[str, Kind] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "sse": "sse",
    "remote": "auto-http",
}
# What entries of clients say to the client alone: what to call without asking, and what to show.
CLIENT_KEYS = frozenset(("alwaysAllow", "autoApprove", "description", "dev", "gallery", "icon", "version"))
# What they say about the server that polyplex says in its own options.
OPTION_OF = {
    "timeout": "timeoutSeconds",
    "includeTools": "allow",
    "enabledTools": "allow",
    "excludeTools": "deny",
    "disabledTools": "deny",
}
URL_KEYS = ("url", "serverUrl", "httpUrl")
# The kind of a server that does not name it, by the key that holds its address.
URL_KINDS: dict[str, Kind] = {"": "stdio", "url": "auto-http", "serverUrl": "auto-http", "httpUrl": "http"}
_PROGRAMS = frozenset(("polyplex", "polyplex.exe"))
_OWN_URL = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\]):7332/")
HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
# What a header value must not hold: control characters other than tab (RFC 9110, 5.5), and what Latin-1 lacks.
HEADER_JUNK = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


def check_name(name: str, path: KeyPath, source: Source) -> None:
    """Raise ConfigError unless `name` can be a server's name."""
    if not name:
        raise source.error(path, "a server needs a name")
    if len(name) > MAX_SERVER_NAME:
        raise source.error(path, f"the name of a server has at most {MAX_SERVER_NAME} characters, found {len(name)}")


def is_polyplex(raw: object) -> bool:
    """Whether an entry is how a client starts or reaches polyplex: clients' own files are read, too."""
    if not isinstance(raw, dict):
        return False
    entry = cast("dict[str, object]", raw)
    args = entry.get("args")
    words = [entry.get("command"), *(cast("list[object]", args) if isinstance(args, list) else ())]
    named = any(isinstance(word, str) and PurePath(word).name.partition("@")[0] in _PROGRAMS for word in words)
    return named or any(isinstance(url, str) and _OWN_URL.match(url) for url in map(entry.get, URL_KEYS))


def build_server(
    name: str, entry: ServerEntry, options: ServerOptions, path: KeyPath, source: Source, home: Path
) -> ServerConfig:
    """Make the ServerConfig of an entry. Raises ConfigError where the entry contradicts itself."""
    url_key, url = _address(entry, path, source)
    if (entry.command is None) == (url is None):
        found = 'both "command" and "url"' if url is not None else 'neither "command" nor "url"'
        raise source.error(path, f"a server has either a command (stdio) or a url (HTTP), this one has {found}")
    kind = _kind(entry, url_key, path, source)
    if url is not None:
        _check_url(url, (*path, url_key), source)
        return ServerConfig(name=name, kind=kind, url=url, headers=_headers(entry, path, source), options=options)
    return ServerConfig(
        name=name,
        kind=kind,
        command=_command(entry, path, source, home),
        args=entry.args or (),
        env=_environment(entry, path, source, home),
        cwd=None if entry.cwd is None else str(resolve(entry.cwd, source.folder, home)),
        options=options,
    )


def resolve(path: str, folder: Path, home: Path) -> Path:
    """The absolute form of a path in the file: `~` is the home folder, relative paths start in `folder`."""
    if path == "~" or path.startswith("~/"):
        return home / path[2:]
    return folder / path


def hint(key: str) -> str | None:
    """Where an unknown key of an entry belongs, or which known one is close to it; None where it is not for us."""
    if key in CLIENT_KEYS:
        return None
    if key in OPTION_OF:
        return f"; say it in polyplex.servers.NAME.{OPTION_OF[key]}"
    if key in keys_of(ServerOptions):
        return f"; it belongs in polyplex.servers.NAME.{key}"
    return suggestion(key, keys_of(ServerEntry))


def _address(entry: ServerEntry, path: KeyPath, source: Source) -> tuple[str, str | None]:
    given = [
        (key, url) for key, url in zip(URL_KEYS, (entry.url, entry.server_url, entry.http_url), strict=True) if url
    ]
    if len(given) > 1 and len({url for _, url in given}) > 1:
        raise source.error((*path, given[1][0]), f'differs from "{given[0][0]}"; keep one of them')
    return given[-1] if given else ("", None)


def _kind(entry: ServerEntry, url_key: str, path: KeyPath, source: Source) -> Kind:
    named: dict[str, Kind] = {key: _named_kind(value, (*path, key), source) for key, value in _types(entry).items()}
    if len(set(named.values())) > 1:
        raise source.error((*path, "transport"), 'differs from "type"; keep one of them')
    kinds: list[Kind] = [*named.values(), URL_KINDS[url_key]]
    kind = kinds[0]
    if (kind == "stdio") != (not url_key):
        needs = 'needs "command"' if kind == "stdio" else 'needs "url"'
        raise source.error((*path, next(iter(named))), f"a server of this type {needs}")
    return kind


def _types(entry: ServerEntry) -> dict[str, str]:
    given = {"type": entry.type, "transport": entry.transport}
    return {key: value for key, value in given.items() if value is not None}


def _named_kind(text: str, path: KeyPath, source: Source) -> Kind:
    kind = KINDS.get(re.sub(r"[-_ ]", "", text.lower()))
    if kind is None:
        raise source.error(path, 'expected "stdio", "http" or "sse" (or "streamable-http", "remote", "local")')
    return kind


def _check_url(url: str, path: KeyPath, source: Source) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(letter.isspace() or not letter.isprintable() for letter in url):
        raise source.error(path, "expected an address that starts with http:// or https:// and names a host")


def _headers(entry: ServerEntry, path: KeyPath, source: Source) -> dict[str, str]:
    headers = entry.headers or {}
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise source.error((*path, "headers", name), "not a valid header name")
        if HEADER_JUNK.search(value):
            raise source.error((*path, "headers", name), "the value holds a line break or other control character")
    return headers


def _command(entry: ServerEntry, path: KeyPath, source: Source, home: Path) -> str:
    command = entry.command or ""
    if not command.strip():
        raise source.error((*path, "command"), "expected the name of a program, found an empty string")
    for index, argument in enumerate((command, *(entry.args or ()))):
        if "\0" in argument:
            raise source.error((*path, "args", index - 1) if index else (*path, "command"), "holds a NUL character")
    return str(home / command[2:]) if command.startswith("~/") else command


def _environment(entry: ServerEntry, path: KeyPath, source: Source, home: Path) -> dict[str, str]:
    variables: dict[str, str] = {}
    if entry.env_file is not None:
        try:
            variables = envfile.read(resolve(entry.env_file, source.folder, home))
        except envfile.EnvFileError as error:
            raise source.error((*path, "envFile"), str(error)) from None
    for name, value in (entry.env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise source.error((*path, "env", name), 'a variable needs a name without "=", and no NUL character')
        variables[name] = value
    return variables
