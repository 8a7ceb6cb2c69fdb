"""What the gateway knows of a client: its binding, its view of the lists, the upstreams that serve it."""

import asyncio

import msgspec

from polyplex.downstream.session import Call, Session
from polyplex.gateway.profile import Profile
from polyplex.gateway.views import View
from polyplex.protocol.bridge.requests import ClientFacts, modern_capabilities
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json
from polyplex.protocol.revisions import Era
from polyplex.upstreams.pool import NO_CAPABILITIES, Binding
from polyplex.upstreams.upstream import Upstream

DECLARED = ("roots", "sampling", "elicitation", "tasks", "experimental", "extensions")


class Client:
    """Kept in `Session.context`. `upstreams` remembers which session with a server was used last."""

    __slots__ = (
        "binding",
        "capabilities",
        "facts",
        "listed",
        "pending",
        "profile",
        "session",
        "started",
        "upstreams",
        "version",
        "view",
    )

    def __init__(self, session: Session, binding: Binding, capabilities: Fields, profile: Profile) -> None:
        self.session = session
        self.profile = profile
        self.binding = binding
        self.capabilities = capabilities
        self.level_changed()
        self.upstreams: dict[str, Upstream] = {}
        self.version = -1
        self.view: View | None = None
        self.listed: dict[str, bytes] = {}
        self.pending: set[str] = set()
        self.started = asyncio.get_running_loop().time()

    def level_changed(self) -> None:
        """Modern servers are told the log level with each request."""
        session = self.session
        self.facts = ClientFacts(modern_capabilities(session.capabilities), session.client_info, session.log_level)

    def can(self, capability: str) -> bool:
        """True where the client declared the capability."""
        return capability in self.capabilities


def canonical_capabilities(raw: bytes) -> tuple[bytes, Fields]:
    """The capabilities that matter to servers, in one spelling for equal sets, and as members."""
    fields = decode_fields(raw)
    kept = {name: msgspec.json.decode(fields[name]) for name in DECLARED if name in fields}
    return (msgspec.json.encode(kept, order="sorted") if kept else NO_CAPABILITIES), fields


def legacy_client(session: Session, profile: Profile) -> Client:
    """The client behind a legacy session; made at `initialize`, or at the first request where that was left out."""
    capabilities, fields = canonical_capabilities(session.capabilities)
    return Client(session, Binding(Era.LEGACY, capabilities, session.id), fields, profile)


def call_of(context: object) -> Call | None:
    """The client's call behind an exchange, where one caused it."""
    return context if isinstance(context, Call) else None


def info(name: str, title: str, version: str) -> bytes:
    """Our own `serverInfo` and `clientInfo`."""
    return encode_json({"name": name, "title": title, "version": version})
