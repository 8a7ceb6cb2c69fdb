"""Files on their way to the disk: synced by a thread of its own, so that nobody waits for the disk.

A file that the disk has is marked as read-only (mode 0400). Until then it survives the end of every process, and a
power cut may take it, or parts of it: whoever finds it unmarked after a restart must check it.
"""

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

log = logging.getLogger("polyplex.store")
MAX_WAITING: Final = 64
# What is written meanwhile is synced along with it: the folders cost as much as the files.
GATHERING_SECONDS: Final = 0.05
SYNCED_MODE: Final = 0o400
_fdatasync: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)


class Syncer:
    """Takes open files and closes them when the disk has them."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "polyplex-payload-sync")
        self._waiting: deque[tuple[int, Path]] = deque()
        self._unsynced: set[Path] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def submit(self, descriptor: int, path: Path) -> None:
        """Sync a file soon; at once where the disk is far behind. Never raises."""
        with self._lock:
            self._unsynced.add(path)
            behind = len(self._waiting) >= MAX_WAITING
            if not behind:
                self._waiting.append((descriptor, path))
        if behind:
            self._sync([(descriptor, path)])
            return
        try:
            self._thread.submit(self._gather)
        except RuntimeError:  # it was closed: what is left is done here
            self._work()

    def knows(self, path: Path) -> bool:
        """Whether the file is one that this process wrote and that is still waiting."""
        with self._lock:
            return path in self._unsynced

    def close(self) -> None:
        """Wait for what is waiting."""
        self._closing.set()
        self._thread.shutdown(wait=True)

    def _gather(self) -> None:
        """The first of several files waits for the others; these find nothing left to do."""
        if self._waiting:
            self._closing.wait(GATHERING_SECONDS)
            self._work()

    def _work(self) -> None:
        with self._lock:
            files = list(self._waiting)
            self._waiting.clear()
        self._sync(files)

    def _sync(self, files: list[tuple[int, Path]]) -> None:
        synced = [(descriptor, path) for descriptor, path in files if _attempt(path, _fdatasync, descriptor)]
        folders = {path.parent for _, path in synced}
        named = {
            folder for folder in folders | {path.parent for path in folders} if _attempt(folder, _sync_folder, folder)
        }
        for descriptor, path in synced:
            if path.parent in named and path.parent.parent in named:
                _attempt(path, os.fchmod, descriptor, SYNCED_MODE)
        for descriptor, path in files:
            with contextlib.suppress(OSError):
                os.close(descriptor)
            with self._lock:
                self._unsynced.discard(path)


def _sync_folder(folder: Path) -> None:
    """The disk has what is named in a folder; one that was removed has nothing to keep."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _attempt(path: Path, work: Callable[..., object], *arguments: object) -> bool:
    try:
        work(*arguments)
    except OSError as error:
        log.warning("%s may be lost in a power cut: %s", path, error.strerror or error)
        return False
    return True
