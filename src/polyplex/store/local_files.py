"""Payloads as files: `FOLDER/<owner>/<id>`, the bytes as they are, followed by their record.

A payload appears by one rename of a file that is complete; before, it is `<id>.part`, locked by the process that
writes it. So whatever is not locked and ends in `.part` was left by a process that is no more. Several processes may
share the folder. A payload that was committed survives the end of every process; the disk has it a moment later
(`syncing.py`), and where a power cut came first, its hash tells whether it is whole.
"""

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import shutil
import stat
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from polyplex.errors import ConfigError, PayloadStoreFailed
from polyplex.store.payload import Name, is_folder, lifetime_of
from polyplex.store.place import Kept, Record
from polyplex.store.syncing import SYNCED_MODE, Syncer

log = logging.getLogger("polyplex.store")
MAGIC: Final = b"\npolyplex payload 1\n"
MAX_RECORD: Final = 16 * 1024
PART: Final = ".part"
_FOOT: Final = len(MAGIC) + 4
_TRIES: Final = 8


class LocalFiles:
    """A folder of payloads. Raises `ConfigError` where it cannot be one; it is made on the first write."""

    threads = 8
    sweep_seconds = 60.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.title = f"the payload folder {folder}"
        self.syncer = Syncer()
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is no folder: give payloads.store another path", key="payloads.store")

    def create(self, name: Name, media_type: str) -> "FileSink":
        """Begin to write a file. The type is kept in its record."""
        with self._failures():
            return FileSink(self, name)

    def open(self, name: Name) -> "FileSource | None":
        """Read a file; None where there is none, or where it is damaged."""
        with self._failures():
            path = self.path(name)
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                source = self._checked(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            if source is None:
                os.close(descriptor)
                log.warning("%s: %s is damaged and counts as missing", self.title, name.id)
            return source

    def _checked(self, path: Path, descriptor: int) -> "FileSource | None":
        """The payload in a file; what another process wrote that the disk may not have had is compared to its hash."""
        source = _opened(descriptor, self.title)
        if source is None or os.fstat(descriptor).st_mode & 0o777 == SYNCED_MODE or self.syncer.knows(path):
            return source
        if _digest(source) != source.record.sha256:
            return None
        self.syncer.submit(os.dup(descriptor), path)
        return source

    def kept(self) -> list[Kept]:
        """All payloads, by the names and sizes of the files."""
        with self._failures():
            return [
                Kept(Name(folder, entry.name), size)
                for folder, entry in self._entries()
                if lifetime_of(entry.name) is not None and (size := _size_of(entry)) is not None
            ]

    def delete(self, name: Name) -> None:
        """Remove the file, and the owner's folder with its last one."""
        with self._failures():
            self.path(name).unlink(missing_ok=True)
            self._leave(name.folder)

    def clean(self, now: float) -> int:
        """Remove the files of writers that are no more."""
        removed = 0
        with self._failures():
            for folder, entry in self._entries():
                if entry.name.endswith(PART) and _abandoned(entry.path):
                    removed += 1
                    self._leave(folder)
        return removed

    def free(self) -> int | None:
        """What the disk has left."""
        for folder in (self.folder, *self.folder.parents):
            with contextlib.suppress(OSError):
                return shutil.disk_usage(folder).free
        return None

    def sign(self, name: Name, seconds: float) -> str | None:
        """A folder has no addresses."""
        return None

    def uri(self, name: Name) -> str | None:
        """A path would say nothing to a client."""
        return None

    def close(self) -> None:
        """Wait for the disk."""
        self.syncer.close()

    def path(self, name: Name) -> Path:
        """The file of a payload. Names are made by `polyplex.store.payload` and hold no separators."""
        return self.folder / name.folder / name.id

    def _entries(self) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as owners:
            for owner in owners:
                if is_folder(owner.name):
                    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(owner.path) as files:
                        for entry in files:
                            yield owner.name, entry

    def _leave(self, folder: str) -> None:
        with contextlib.suppress(OSError):  # others are in it
            (self.folder / folder).rmdir()

    @contextlib.contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise failure(self.title, error) from error


class FileSink:
    """A file that is being written, under a name that no reader looks at."""

    def __init__(self, files: LocalFiles, name: Name) -> None:
        self._files, self._name = files, name
        self._final = files.path(name)
        self._part = self._final.with_name(name.id + PART)
        self._descriptor = _created(files.folder, self._part)

    def append(self, chunks: Sequence[bytes]) -> None:
        """Write to the end of the file."""
        try:
            for chunk in chunks:
                _write_all(self._descriptor, chunk)
        except OSError as error:
            raise failure(self._files.title, error) from error

    def finish(self, record: Record) -> None:
        """The record, then the name; the disk is left to the syncer."""
        encoded = msgspec.json.encode(record)
        try:
            _write_all(self._descriptor, encoded + len(encoded).to_bytes(4, "big") + MAGIC)
            self._part.rename(self._final)
        except OSError as error:
            raise failure(self._files.title, error) from error
        self._files.syncer.submit(self._descriptor, self._final)
        self._descriptor = -1

    def abort(self) -> None:
        """Remove the file."""
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            self._part.unlink()
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1
        with contextlib.suppress(OSError):
            self._final.parent.rmdir()


class FileSource:
    """An open file; deleting it does not take it from its reader."""

    def __init__(self, descriptor: int, record: Record, title: str) -> None:
        self._descriptor, self.record, self._title = descriptor, record, title

    def read_at(self, offset: int, length: int) -> bytes:
        """Bytes of the payload, never of its record."""
        length = min(length, self.record.size - offset)
        if length <= 0:
            return b""
        try:
            data = os.pread(self._descriptor, length, offset)
            while len(data) < length:
                more = os.pread(self._descriptor, length - len(data), offset + len(data))
                if not more:
                    raise PayloadStoreFailed(f"{self._title}: a file has become shorter while it was read")
                data += more
        except OSError as error:
            raise failure(self._title, error) from error
        return data

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def failure(title: str, error: OSError) -> PayloadStoreFailed:
    """What a failing disk is reported as."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PayloadStoreFailed(
            f"{title} has no room: {error.strerror}. Free space on that disk, lower payloads.maxBytes, or give "
            "payloads.store another place"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PayloadStoreFailed(
            f"{title} cannot be used: {error.strerror}. Make it writable for this user, or give payloads.store another "
            "place"
        )
    return PayloadStoreFailed(f"{title} failed: {error.strerror or error}")


def _created(root: Path, part: Path) -> int:
    """A new locked file; its folder is made where it is missing, also where it goes away meanwhile."""
    for _ in range(_TRIES):
        _make_folders(root, part.parent)
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # nobody swept it before it was locked
            return descriptor
        os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, "its folders are removed as fast as they are made", str(part))


def _make_folders(root: Path, folder: Path) -> None:
    if folder.is_dir():
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _opened(descriptor: int, title: str) -> FileSource | None:
    """The payload in a file, where its end is as we write it."""
    status = os.fstat(descriptor)
    start = max(0, status.st_size - MAX_RECORD - _FOOT)
    tail = os.pread(descriptor, MAX_RECORD + _FOOT, start)
    if not stat.S_ISREG(status.st_mode) or not tail.endswith(MAGIC) or len(tail) < _FOOT:
        return None
    length = int.from_bytes(tail[-_FOOT : -len(MAGIC)], "big")
    try:
        record = msgspec.json.decode(tail[len(tail) - _FOOT - length : -_FOOT], type=Record)
    except msgspec.DecodeError:
        return None
    return FileSource(descriptor, record, title) if record.size + length + _FOOT == status.st_size else None


def _digest(source: FileSource) -> str:
    digest, offset = hashlib.sha256(), 0
    while data := source.read_at(offset, 1 << 20):
        digest.update(data)
        offset += len(data)
    return digest.hexdigest()


def _size_of(entry: "os.DirEntry[str]") -> int | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _abandoned(path: str) -> bool:
    """Remove a file that no living process writes; whether it was one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path(path).unlink(missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
