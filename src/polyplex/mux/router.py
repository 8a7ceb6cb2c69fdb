"""Routes: from a public name or URI to the server behind it, over the snapshots of all servers."""

from collections.abc import Iterable
from typing import NamedTuple

from polyplex.errors import RpcError
from polyplex.mux.entries import Entry, Naming
from polyplex.mux.uris import Template, best_template, split_uri
from polyplex.protocol.jsonrpc import INVALID_PARAMS


class Target(NamedTuple):
    """Where a request goes: the server, its own name or URI, and the entry where one is listed."""

    server: str
    local: str
    entry: Entry | None


class Listed:
    """The entries of one kind over all servers, in a stable order, keyed by what clients use.

    A key that two servers claim belongs to neither: it is kept in `collisions`, and using it is an error naming both.
    """

    __slots__ = ("by_key", "collisions", "entries")

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.by_key: dict[str, Entry] = {}
        self.collisions: dict[str, list[str]] = {}
        for entry in entries:
            other = self.by_key.get(entry.key)
            if other is None:
                self.by_key[entry.key] = entry
            elif other.server != entry.server:
                claimants = self.collisions.setdefault(entry.key, [other.server])
                if entry.server not in claimants:
                    claimants.append(entry.server)
        for key in self.collisions:
            del self.by_key[key]
        self.entries = list(self.by_key.values())

    def find(self, kind: str, key: str) -> Entry:
        """The entry behind a key. Raises `RpcError` -32602 where there is none or more than one."""
        entry = self.by_key.get(key)
        if entry is not None:
            return entry
        servers = self.collisions.get(key)
        if servers:
            claim = " and ".join(repr(server) for server in servers)
            raise RpcError(INVALID_PARAMS, f'the {kind} {key!r} is offered by {claim}; set "naming": "prefix"')
        raise RpcError(INVALID_PARAMS, f"unknown {kind}: {key}")


class Routes:
    """Everything that can be reached at one moment. Cheap to build, never changed afterwards."""

    __slots__ = ("_labels", "_templates", "_uris", "prompts", "resource_servers", "resources", "templates", "tools")

    def __init__(
        self, lists: dict[str, list[Entry]], namings: Iterable[Naming], resource_servers: Iterable[str]
    ) -> None:
        self.tools = Listed(lists["tools"])
        self.prompts = Listed(lists["prompts"])
        self.resources = Listed(lists["resources"])
        self.templates = Listed(lists["resourceTemplates"])
        self.resource_servers = tuple(resource_servers)
        self._labels = {naming.label: naming.server for naming in namings if naming.prefix}
        self._uris: dict[str, dict[str, Entry]] = {}
        for entry in lists["resources"]:
            self._uris.setdefault(entry.local, {}).setdefault(entry.server, entry)
        self._templates = [(Template(entry.local), entry.server) for entry in lists["resourceTemplates"]]

    def listed(self, member: str) -> Listed:
        """The entries of a list result's member, such as `tools`."""
        return {
            "tools": self.tools,
            "prompts": self.prompts,
            "resources": self.resources,
            "resourceTemplates": self.templates,
        }[member]

    def tool(self, name: str) -> Target:
        """The server and local name behind a tool name. Raises `RpcError` -32602."""
        entry = self.tools.find("tool", name)
        return Target(entry.server, entry.local, entry)

    def prompt(self, name: str) -> Target:
        """The server and local name behind a prompt name. Raises `RpcError` -32602."""
        entry = self.prompts.find("prompt", name)
        return Target(entry.server, entry.local, entry)

    def resource(self, uri: str, not_found: int) -> Target:
        """The server and its own URI.

        A public URI names its server. Others are tried as they are: listed, else the templates, else the only server
        that has resources. Raises `RpcError` with code `not_found`, or -32602 where several servers claim the URI.
        """
        split = split_uri(uri, self._labels)
        if split is not None:
            return Target(*split, self.resources.by_key.get(uri))
        listed = self._uris.get(uri, {})
        found = list(listed) or best_template(self._templates, uri) or self.resource_servers
        servers = list(dict.fromkeys(found))
        if len(servers) == 1:
            return Target(servers[0], uri, listed.get(servers[0]))
        if not listed:
            raise RpcError(not_found, f"resource not found: {uri}")
        claim = " and ".join(repr(server) for server in servers)
        raise RpcError(INVALID_PARAMS, f"the resource {uri!r} is offered by {claim}; use the URI that the list gives")

    def template(self, text: str) -> Target:
        """The server and its own form of a URI template, or of a URI, as completion references use either."""
        entry = self.templates.by_key.get(text)
        if entry is not None:
            return Target(entry.server, entry.local, entry)
        split = split_uri(text, self._labels)
        if split is not None:
            return Target(*split, None)
        owners = [entry for entry in self.templates.entries if entry.local == text]
        if len({entry.server for entry in owners}) == 1:
            return Target(owners[0].server, text, owners[0])
        return self.resource(text, INVALID_PARAMS)
