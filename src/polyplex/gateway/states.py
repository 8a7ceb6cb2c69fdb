"""What a `requestState` of ours says, sealed: nobody else can read, make or change it (2026-07-28, "MRTR", "Security").

It is bound to the caller, to the method and params of the request, and to a time; that it is used once is not left to
the seal, but to whoever opens it.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from polyplex.errors import RpcError
from polyplex.protocol.bridge.questions import Link
from polyplex.protocol.jsonrpc import INVALID_PARAMS
from polyplex.store.seal import KeyRing, SealError

PURPOSE: Final = "requestState"
SLACK_SECONDS: Final = 2.0


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """`parked`: a call that waits in the process `replica`. `link`: nothing ran yet, a page had to be visited first.
    `relay`: `inner` is a modern server's own state.
    """

    kind: str
    caller: str
    digest: bytes
    expires: float
    replica: str = ""
    call: str = ""
    round: int = 0
    inner: str = ""
    links: tuple[Link, ...] = ()


class States:
    """Seals and opens. `clock` gives seconds since 1970."""

    def __init__(self, ring: Callable[[], KeyRing], clock: Callable[[], float] = time.time) -> None:
        self._make_ring = ring
        self._ring: KeyRing | None = None
        self._clock = clock
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(State).decode

    @property
    def ring(self) -> KeyRing:
        """The keys; read when first needed."""
        if self._ring is None:
            self._ring = self._make_ring()
        return self._ring

    def expiry(self, seconds: float) -> float:
        """The time until which a state sealed now is good; the call itself ends a moment earlier."""
        return self._clock() + seconds + SLACK_SECONDS

    def seal(self, state: State) -> str:
        """The text for the client."""
        return self.ring.seal(self._encode(state), PURPOSE)

    def open(self, text: str, caller: str, digest: bytes) -> State:
        """The state behind a text. Raises `RpcError` -32602 where it is not good for this caller and request."""
        try:
            state = self._decode(self.ring.open(text, PURPOSE))
        except (SealError, msgspec.DecodeError) as error:
            raise RpcError(
                INVALID_PARAMS, f"requestState is not one that polyplex gave ({error}); call again without it"
            ) from None
        if state.caller != caller:
            raise RpcError(INVALID_PARAMS, "requestState was given to somebody else; call again without it")
        if state.digest != digest:
            raise RpcError(
                INVALID_PARAMS,
                "requestState belongs to another request: repeat the method and params of the first, unchanged",
            )
        if state.expires < self._clock():
            raise RpcError(INVALID_PARAMS, "requestState has expired; call again without it")
        return state
