"""Public ids of tasks: the server and its own id, sealed for one caller, so that nothing has to be remembered.

They are opaque, cannot be made up, and mean nothing to another caller.
"""

import uuid
from typing import Final, NamedTuple, Protocol


class Sealer(Protocol):
    """Seals texts; see `polyplex.store.seal`."""

    def seal(self, plain: bytes, purpose: str) -> str:
        """The sealed form."""
        ...

    def open(self, text: str, purpose: str) -> bytes:
        """What was sealed. Raises `ValueError`."""
        ...


class TaskRef(NamedTuple):
    """A task: its server and the server's own id, or, `own`, one that polyplex holds itself."""

    server: str
    local: str
    own: bool = False


_TEXT: Final = 0
_UUID: Final = 1
_OWN: Final = 2
_HEX: Final = 3
_LENGTHS: Final = {36: _UUID, 32: _HEX}


def seal_id(ring: Sealer, ref: TaskRef, caller: str) -> str:
    """A public id for the caller; each call gives another one."""
    server = ref.server.encode("utf-8", "surrogatepass")
    kind, local = _packed(ref)
    return ring.seal(bytes((kind,)) + len(server).to_bytes(2, "big") + server + local, _purpose(caller))


def open_id(ring: Sealer, public: str, caller: str) -> TaskRef:
    """The task behind a public id. Raises `ValueError` for one that was not made for this caller."""
    plain = ring.open(public, _purpose(caller))
    kind, end = plain[0], 3 + int.from_bytes(plain[1:3], "big")
    server, local = plain[3:end].decode("utf-8", "surrogatepass"), plain[end:]
    if kind in (_UUID, _HEX):
        identifier = uuid.UUID(bytes=local)
        return TaskRef(server, str(identifier) if kind == _UUID else identifier.hex)
    return TaskRef(server, local.decode("utf-8", "surrogatepass"), kind == _OWN)


def _packed(ref: TaskRef) -> tuple[int, bytes]:
    """The usual forms of an id, a UUID with hyphens or without, take 16 bytes instead of 36 or 32."""
    kind = _OWN if ref.own else _LENGTHS.get(len(ref.local), _TEXT)
    if kind in (_UUID, _HEX):
        try:
            parsed = uuid.UUID(ref.local)
        except ValueError:
            kind = _TEXT
        else:
            if ref.local == (str(parsed) if kind == _UUID else parsed.hex):
                return kind, parsed.bytes
            kind = _TEXT
    return kind, ref.local.encode("utf-8", "surrogatepass")


def _purpose(caller: str) -> str:
    return f"task of {caller}"
