"""The sessions of legacy clients by the ids that they send: found for their caller only, replaced on request.

A client asks for a new id because the old one may have leaked (2025-11-25, "Session Hijacking"). The old one works for
a while, for what is on its way; it names no new id again once that has been used.
"""

from typing import Final

from polyplex.downstream.session import Session, new_session_id

GRACE_SECONDS: Final = 30.0


class _Replaced:
    """What became of an id: its successor, whether that has been used, and when the id stops working (loop time)."""

    __slots__ = ("ends", "successor", "used")

    def __init__(self, successor: str, ends: float) -> None:
        self.successor = successor
        self.ends = ends
        self.used = False


class SessionTable:
    """`by_id` has the ids that work."""

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}
        self.sessions: dict[str, Session] = {}
        self._ids: dict[str, set[str]] = {}
        self._replaced: dict[str, _Replaced] = {}
        self._unused: dict[str, _Replaced] = {}

    def __len__(self) -> int:
        return len(self.sessions)

    def add(self, session: Session) -> None:
        """A session has begun; its first id is its own."""
        self.by_id[session.id] = self.sessions[session.id] = session
        self._ids[session.id] = {session.id}

    def find(self, identifier: str, caller: str, now: float) -> Session | None:
        """The session of an id; None for one that is not known, has stopped working or belongs to another caller."""
        session = self.by_id.get(identifier)
        if session is None or session.caller != caller:
            return None
        if self._replaced:
            replaced = self._replaced.get(identifier)
            if replaced is not None and replaced.ends <= now:
                self._forget(identifier)
                return None
            unused = self._unused.pop(identifier, None)
            if unused is not None:
                unused.used = True
        return session

    def rotate(self, identifier: str, now: float) -> str | None:
        """A new id in place of one that works; None where that was replaced and its successor is in use.

        A successor that nobody has used, since the answer with it was lost, gives way to another.
        """
        session = self.by_id[identifier]
        replaced = self._replaced.get(identifier)
        ends = now + GRACE_SECONDS
        if replaced is not None:
            if replaced.used:
                return None
            self._forget(replaced.successor)
            ends = replaced.ends
        successor = new_session_id()
        self.by_id[successor] = session
        self._ids[session.id].add(successor)
        self._replaced[identifier] = self._unused[successor] = _Replaced(successor, ends)
        return successor

    def remove(self, session: Session) -> None:
        """A session has ended: none of its ids works any more."""
        if self.sessions.pop(session.id, None) is not None:
            for identifier in list(self._ids[session.id]):
                self._forget(identifier)
            del self._ids[session.id]

    def tick(self, now: float) -> None:
        """Forget ids whose time is over."""
        for identifier in [each for each, replaced in self._replaced.items() if replaced.ends <= now]:
            self._forget(identifier)

    def _forget(self, identifier: str) -> None:
        session = self.by_id.pop(identifier)
        self._ids[session.id].discard(identifier)
        self._replaced.pop(identifier, None)
        self._unused.pop(identifier, None)
