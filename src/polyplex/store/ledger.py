"""How much is kept, of whom, and what has to make room. It knows sizes and names, not bytes.

Whoever writes reserves first; the oldest payloads go when there is no room, of the same caller where the limit is the
caller's. Bytes that other processes keep count from the next listing on.
"""

from collections.abc import Iterable

from polyplex.errors import PayloadRefused
from polyplex.store.payload import Name, lifetime_of
from polyplex.store.place import Kept


class Ledger:
    """The books. `max_bytes` is for all, `caller_max_bytes` for each caller. Not safe between threads."""

    def __init__(self, max_bytes: int, caller_max_bytes: int | None) -> None:
        self.max_bytes = max_bytes
        self.caller_max_bytes = max_bytes if caller_max_bytes is None else min(max_bytes, caller_max_bytes)
        self._sizes: dict[Name, int] = {}  # oldest first
        self._owners: dict[str, dict[Name, int]] = {}
        self._used: dict[str, int] = {}
        self._reserved: dict[str, int] = {}
        self.total = 0
        self.reserved = 0

    def load(self, kept: Iterable[Kept]) -> None:
        """What a listing found is what there is."""
        self._sizes, self._owners, self._used, self.total = {}, {}, {}, 0
        for item in sorted(kept, key=_age):
            self._enter(item.name, item.size)

    def used_by(self, folder: str) -> int:
        """Bytes kept for one caller."""
        return self._used.get(folder, 0)

    def reserve(self, folder: str, size: int) -> None:
        """So many bytes more are coming."""
        self._reserved[folder] = self._reserved.get(folder, 0) + size
        self.reserved += size

    def release(self, folder: str, size: int) -> None:
        """So many bytes are not coming after all, or have been entered."""
        self.reserved -= size
        left = self._reserved.get(folder, 0) - size
        if left > 0:
            self._reserved[folder] = left
        else:
            self._reserved.pop(folder, None)

    def crowded(self, folder: str) -> bool:
        """Whether what is kept and what is coming is more than may be."""
        coming = self._reserved.get(folder, 0)
        return self.total + self.reserved > self.max_bytes or self.used_by(folder) + coming > self.caller_max_bytes

    def make_room(self, folder: str) -> list[Name]:
        """Strike the oldest off the books until all fits; their names. Raises `PayloadRefused` where it never will."""
        removed: list[Name] = []
        own = self._owners.get(folder, {})
        while self.used_by(folder) + self._reserved.get(folder, 0) > self.caller_max_bytes and own:
            removed.append(self._strike(next(iter(own))))
        while self.total + self.reserved > self.max_bytes and self._sizes:
            removed.append(self._strike(next(iter(self._sizes))))
        if self.crowded(folder):
            raise PayloadRefused(
                "as many results are being stored at once as payloads.maxBytes allows; try again, or raise it"
            )
        return removed

    def enter(self, name: Name, size: int) -> None:
        """A payload is kept from now on."""
        self._enter(name, size)

    def strike(self, name: Name) -> None:
        """A payload is kept no longer."""
        if name in self._sizes:
            self._strike(name)

    @property
    def over(self) -> bool:
        """Whether more is kept than may be, such as after a limit was lowered."""
        return self.total > self.max_bytes or any(used > self.caller_max_bytes for used in self._used.values())

    def trim(self) -> list[Name]:
        """Strike the oldest off the books until what is kept is within the limits; their names."""
        removed: list[Name] = []
        for folder in list(self._owners):
            while self.used_by(folder) > self.caller_max_bytes:
                removed.append(self._strike(next(iter(self._owners[folder]))))
        while self.total > self.max_bytes:
            removed.append(self._strike(next(iter(self._sizes))))
        return removed

    def expired(self, now: float) -> list[Name]:
        """All that nobody may read any more."""
        return [name for name in self._sizes if has_expired(name, now)]

    def _enter(self, name: Name, size: int) -> None:
        self.strike(name)  # a listing may have found it already
        self._sizes[name] = size
        self._owners.setdefault(name.folder, {})[name] = size
        self._used[name.folder] = self._used.get(name.folder, 0) + size
        self.total += size

    def _strike(self, name: Name) -> Name:
        size = self._sizes.pop(name)
        own = self._owners[name.folder]
        del own[name]
        self._used[name.folder] -= size
        if not own:
            del self._owners[name.folder], self._used[name.folder]
        self.total -= size
        return name


def has_expired(name: Name, now: float) -> bool:
    """Whether the time of a payload is over."""
    lifetime = lifetime_of(name.id)
    return lifetime is None or (lifetime.expires is not None and lifetime.expires <= now)


def _age(item: Kept) -> float:
    lifetime = lifetime_of(item.name.id)
    return 0.0 if lifetime is None else lifetime.created
