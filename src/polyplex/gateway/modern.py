"""Modern clients: each request tells what its client can do, and nothing else ties two requests together.

Legacy servers were told of capabilities once, at the start of their session. So modern requests are sorted by what they
declare; those that declare the same share sessions. A client that wants a server's state (a browser, a cursor) to be
its own for a conversation names it in each request, by the `_meta` key `polyplex/session`.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.profile import Profile, Profiles
from polyplex.protocol.envelope import CAPABILITIES_KEY, CLIENT_INFO_KEY
from polyplex.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fields, decode_fields, decode_params, decode_text
from polyplex.protocol.revisions import LATEST_MODERN, Era
from polyplex.upstreams.pool import NO_CAPABILITIES, Binding

log = logging.getLogger("polyplex.gateway")
HANDLE_KEY: Final = "polyplex/session"
HANDLE_IDLE_SECONDS: Final = 1800.0
SWEEP_SECONDS: Final = 60.0
MAX_HANDLES: Final = 256
MAX_HANDLE_CHARACTERS: Final = 128
MAX_METAS: Final = 256
MAX_META_BYTES: Final = 2048
MAX_SETS: Final = 64
_MODES: Final = {"sampling": ("tools", "context"), "elicitation": ("form", "url")}
_HANDLE_MARK: Final = HANDLE_KEY.encode()


class ModernClients:
    """The clients by what their requests declare. `released` is called with the binding's session of one that ended."""

    def __init__(
        self,
        prepare: Callable[[Binding], None],
        released: Callable[[str], None],
        busy: Callable[[Client], bool],
        profiles: Profiles,
    ) -> None:
        self._prepare = prepare
        self._released = released
        self._busy = busy
        self._profiles = profiles
        self._session = Session(Era.MODERN, LATEST_MODERN, http=True, identifier="modern")
        self.plain = Client(self._session, Binding(Era.MODERN), {}, profiles.default)
        self._by_meta: dict[bytes, Client] = {}
        self._by_capabilities: dict[tuple[bytes, Profile], Client] = {(NO_CAPABILITIES, profiles.default): self.plain}
        self._by_handle: OrderedDict[tuple[bytes, Profile, str], tuple[Client, float]] = OrderedDict()
        self._sweep: asyncio.TimerHandle | None = None

    def all(self) -> list[Client]:
        """Every one that is known."""
        return [*self._by_capabilities.values(), *(client for client, _ in self._by_handle.values())]

    def find(self, call: Call) -> Client:
        """The client behind a call. Raises `RpcError` for a session handle that is not usable."""
        try:
            fields = call.fields
            if fields is None:
                fields = call.fields = decode_params(call.params or b"{}")
            raw = bytes(fields.get("_meta", b"{}"))
            return self._by_meta.get(raw) or self._read(raw)
        except RemoteProtocolError:
            return self.plain  # the call is refused for it where it is carried out

    def _read(self, raw: bytes) -> Client:
        meta = decode_fields(raw)
        profile = self._profiles.of(bytes(meta.get(CLIENT_INFO_KEY, b"{}")))
        capabilities, fields = bridged_capabilities(meta.get(CAPABILITIES_KEY, Raw(b"{}")))
        if _HANDLE_MARK in raw and HANDLE_KEY in meta:
            return self._handled(capabilities, fields, profile, _handle(meta[HANDLE_KEY]))
        client = self._by_capabilities.get((capabilities, profile))
        if client is None and len(self._by_capabilities) >= MAX_SETS and "experimental" in fields:
            capabilities, fields = bridged_capabilities(capabilities, experimental=False)
            client = self._by_capabilities.get((capabilities, profile))
        if client is None:
            client = Client(self._session, Binding(Era.MODERN, capabilities), fields, profile)
            self._by_capabilities[(capabilities, profile)] = client
            self._prepare(client.binding)
        if len(raw) <= MAX_META_BYTES:
            if len(self._by_meta) >= MAX_METAS:
                self._by_meta.clear()
            self._by_meta[raw] = client
        return client

    # -- conversations that a client names
    def _handled(self, capabilities: bytes, fields: Fields, profile: Profile, handle: str) -> Client:
        now = asyncio.get_running_loop().time()
        known = self._by_handle.pop((capabilities, profile, handle), None)
        if known is None:
            self._make_room()
            session = f"handle:{len(handle)}:{handle}:{capabilities.decode()}"
            known = Client(self._session, Binding(Era.MODERN, capabilities, session), fields, profile), now
        self._by_handle[(capabilities, profile, handle)] = known[0], now
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._end_idle)
        return known[0]

    def _make_room(self) -> None:
        if len(self._by_handle) < MAX_HANDLES:
            return
        for key, (client, _) in self._by_handle.items():
            if not self._busy(client):
                del self._by_handle[key]
                self._released(client.binding.session)
                return
        raise RpcError(INTERNAL_ERROR, f"too many sessions named by {HANDLE_KEY}; at most {MAX_HANDLES}")

    def _end_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = None
        for key, (client, used) in list(self._by_handle.items()):
            if loop.time() - used > HANDLE_IDLE_SECONDS and not self._busy(client):
                log.info("a session named by a modern client was idle and has ended")
                del self._by_handle[key]
                self._released(client.binding.session)
        if self._by_handle:
            self._sweep = loop.call_later(SWEEP_SECONDS, self._end_idle)

    def close(self) -> None:
        """Stop the timer."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None


def bridged_capabilities(raw: bytes | Raw, *, experimental: bool = True) -> tuple[bytes, Fields]:
    """What of a modern client's capabilities a legacy session can be told, in one spelling for equal sets.

    There are few such sets, so that nobody can have sessions opened without end; those with `experimental` are as many
    as clients like, so `ModernClients` leaves it out once there are many.
    """
    fields = decode_fields(raw)
    kept: dict[str, dict[str, object] | Raw] = {}
    if "roots" in fields:
        kept["roots"] = {}
    for name, modes in _MODES.items():
        if name in fields:
            declared = decode_fields(fields[name])
            kept[name] = {mode: {} for mode in modes if mode in declared}
    if experimental and bytes(fields.get("experimental", b""))[:1] == b"{":
        kept["experimental"] = fields["experimental"]
    canonical = msgspec.json.encode(kept, order="sorted") if kept else NO_CAPABILITIES
    return canonical, decode_fields(canonical)


def _handle(raw: Raw) -> str:
    try:
        handle = decode_text(raw)
    except RemoteProtocolError:
        handle = ""
    if not 0 < len(handle) <= MAX_HANDLE_CHARACTERS:
        raise RpcError(INVALID_PARAMS, f"_meta.{HANDLE_KEY} is a text of 1 to {MAX_HANDLE_CHARACTERS} characters")
    return handle
