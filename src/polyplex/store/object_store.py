"""Payloads in a bucket of S3, Google Cloud Storage or Azure, through obstore (the extra `polyplex[cloud]`).

The bytes are `PREFIX/<owner>/<id>`, so that a presigned address gives them as they are; the record is
`PREFIX/<owner>/<id>.json`, written last and only if it is not there: a payload exists once its record does. Bytes
without a record, older than any upload may take, were left by a process that is no more.
"""

import contextlib
import queue
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from polyplex.errors import ConfigError, PayloadError, PayloadStoreFailed
from polyplex.store.payload import Name, is_folder, lifetime_of
from polyplex.store.place import Kept, Record

PART_BYTES: Final = 8 << 20
AHEAD_BYTES: Final = 4 << 20
UPLOADS_AT_ONCE: Final = 2  # parts of one upload; each is held in memory
QUEUED_LOTS: Final = 2
ABANDONED_SECONDS: Final = 6 * 3600.0
RECORD: Final = ".json"
MAX_SIGNED_SECONDS: Final = 7 * 24 * 3600.0
_RETRIES: Final = 3
_RETRY_SECONDS: Final = 30
_CLIENT_DEFAULTS: Final[Mapping[str, str]] = {"connect_timeout": "5s", "timeout": "60s"}
_CLIENT_KEYS: Final = frozenset(
    ("allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "proxy_ca_certificate")
    + ("proxy_excludes", "read_timeout", "root_certificate", "timeout", "user_agent", "http1_only", "http2_only")
)
_ENDPOINT_KEYS: Final = ("endpoint", "base_url")


class ObjectBucket:
    """A bucket, or what is below a prefix in it. `store` is an obstore store for the whole bucket."""

    threads = 32
    sweep_seconds = 600.0  # each lists the bucket

    def __init__(self, store: Any, scheme: str, bucket: str, prefix: str) -> None:
        import obstore

        self._obstore: Any = obstore
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._root = f"{scheme}://{bucket}/"
        self.title = f"the payload store {self._root}{prefix}"

    @classmethod
    def from_address(cls, address: str, options: Mapping[str, str]) -> "ObjectBucket":
        """The bucket behind `s3://BUCKET/PREFIX` and the like; no connection is made. Raises `ConfigError`."""
        parts = urlsplit(address)
        if not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
            raise ConfigError(
                f"{parts.scheme}: expected {parts.scheme}://BUCKET/PREFIX and nothing else; credentials belong in "
                "payloads.storeOptions or in the environment",
                key="polyplex.payloads.store",
            )
        store = _connected(parts.scheme, parts.netloc, options)
        return cls(store, parts.scheme, parts.netloc, parts.path.strip("/"))

    def create(self, name: Name, media_type: str) -> "ObjectSink":
        """Begin an upload."""
        return ObjectSink(self, name, media_type)

    def open(self, name: Name) -> "ObjectSource | None":
        """Read an object; None where there is no record of it."""
        key = self.key(name)
        with self.failures():
            try:
                raw = bytes(self._obstore.get(self._store, key + RECORD).bytes())
                return ObjectSource(self, key, msgspec.json.decode(raw, type=Record))
            except FileNotFoundError:
                return None
            except msgspec.DecodeError as error:
                raise PayloadStoreFailed(f"{self.title}: {key}{RECORD} is no record of ours") from error

    def kept(self) -> list[Kept]:
        """All payloads that have a record."""
        return [Kept(name, size) for name, (size, _, whole) in self._listing().items() if whole]

    def delete(self, name: Name) -> None:
        """The record first: from then on there is no payload."""
        key = self.key(name)
        with self.failures():
            for path in (key + RECORD, key):
                with contextlib.suppress(FileNotFoundError):
                    self._obstore.delete(self._store, path)

    def clean(self, now: float) -> int:
        """Remove bytes that never got a record, and records whose bytes are gone."""
        removed = 0
        for name, (_, changed, whole) in self._listing().items():
            if not whole and now - changed > ABANDONED_SECONDS:
                self.delete(name)
                removed += 1
        return removed

    def free(self) -> int | None:
        """A bucket does not say."""
        return None

    def sign(self, name: Name, seconds: float) -> str | None:
        """A presigned address, for a week at most."""
        with self.failures():
            lifetime = timedelta(seconds=max(1, round(min(seconds, MAX_SIGNED_SECONDS))))
            return self._obstore.sign(self._store, "GET", self.key(name), lifetime)

    def uri(self, name: Name) -> str | None:
        """`s3://BUCKET/KEY` and the like."""
        return self._root + self.key(name)

    def close(self) -> None:
        """Connections end with the store."""

    def key(self, name: Name) -> str:
        """Where the bytes of a payload are."""
        return f"{self._prefix}{name.folder}/{name.id}"

    def put(self, key: str, data: Any, media_type: str, *, create: bool = False) -> None:
        """Write one object: bytes at once, an iterator in parts."""
        with self.failures():
            self._obstore.put(
                self._store,
                key,
                data,
                attributes={"Content-Type": media_type},
                mode="create" if create else None,
                chunk_size=PART_BYTES,
                max_concurrency=UPLOADS_AT_ONCE,
            )

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Some bytes of an object."""
        with self.failures():
            return bytes(self._obstore.get_range(self._store, key, start=offset, length=length))

    def _listing(self) -> dict[Name, tuple[int, float, bool]]:
        """Size, time of the last change and completeness of all payloads; 1,000 objects a request."""
        found: dict[Name, tuple[int, float, bool]] = {}
        records: dict[Name, float] = {}
        with self.failures():
            for batch in self._obstore.list(self._store, prefix=self._prefix or None):
                for item in cast(Sequence[dict[str, Any]], batch):
                    name, is_record = self._name_of(item["path"])
                    changed = item["last_modified"].timestamp()
                    if name is None:
                        continue
                    if is_record:
                        records[name] = changed
                    else:
                        found[name] = (item["size"], changed, False)
        for name, changed in records.items():
            found[name] = (*found[name][:2], True) if name in found else (0, changed, False)
        return found

    def _name_of(self, path: str) -> tuple[Name | None, bool]:
        folder, slash, last = path.removeprefix(self._prefix).partition("/")
        identifier = last.removesuffix(RECORD)
        if not slash or not is_folder(folder) or lifetime_of(identifier) is None:
            return None, False
        return Name(folder, identifier), identifier != last

    @contextlib.contextmanager
    def failures(self) -> Generator[None]:
        """Turn what obstore raises into `PayloadStoreFailed`, without what an address may hold of secrets."""
        try:
            yield
        except (PayloadError, FileNotFoundError):
            raise
        except self._obstore.exceptions.BaseError as error:
            raise PayloadStoreFailed(f"{self.title} failed: {_reason(error)}") from None
        except (OSError, ValueError, RuntimeError) as error:
            raise PayloadStoreFailed(f"{self.title} failed: {_reason(error)}") from None


class ObjectSource:
    """An object that is read in ranges. It is cut off where it is removed meanwhile."""

    def __init__(self, bucket: ObjectBucket, key: str, record: Record) -> None:
        self._bucket, self._key, self.record = bucket, key, record
        self._ahead, self._start = b"", 0

    def read_at(self, offset: int, length: int) -> bytes:
        """One request; who reads on from where the last one ended gets a larger one, for what will follow."""
        length = min(length, self.record.size - offset)
        if length <= 0:
            return b""
        at = offset - self._start
        if at < 0 or at + length > len(self._ahead):
            follows = bool(self._ahead) and at == len(self._ahead)
            self._ahead = self._fetched(offset, max(length, AHEAD_BYTES) if follows else length)
            self._start, at = offset, 0
        return self._ahead[at : at + length]

    def _fetched(self, offset: int, length: int) -> bytes:
        try:
            return self._bucket.get_range(self._key, offset, min(length, self.record.size - offset))
        except FileNotFoundError:
            raise PayloadStoreFailed(f"{self._bucket.title}: a payload was removed while it was read") from None

    def close(self) -> None:
        """Nothing is open."""


class ObjectSink:
    """An upload: one request where it is small, else in parts, by a thread of its own."""

    def __init__(self, bucket: ObjectBucket, name: Name, media_type: str) -> None:
        self._bucket, self._name, self._media_type = bucket, name, media_type
        self._key = bucket.key(name)
        self._chunks: list[bytes] = []
        self._size = 0
        self._upload: _Upload | None = None

    def append(self, chunks: Sequence[bytes]) -> None:
        """Keep it until it is a part, and then send it."""
        self._chunks += chunks
        self._size += sum(map(len, chunks))
        if self._size >= PART_BYTES:
            if self._upload is None:
                self._upload = _Upload(lambda lots: self._bucket.put(self._key, lots, self._media_type))
            self._upload.send(self._taken())

    def finish(self, record: Record) -> None:
        """The rest of the bytes, then the record."""
        if self._upload is None:
            self._bucket.put(self._key, self._taken(), record.media_type, create=True)
        else:
            self._upload.send(self._taken())
            self._upload.finish()
        self._bucket.put(self._key + RECORD, msgspec.json.encode(record), "application/json", create=True)

    def abort(self) -> None:
        """End the upload; its parts are dropped, and objects removed. What cannot be is left to `clean`."""
        if self._upload is not None:
            self._upload.abort()
        self._chunks, self._size = [], 0
        with contextlib.suppress(PayloadStoreFailed):
            self._bucket.delete(self._name)

    def _taken(self) -> bytes:
        data, self._chunks, self._size = b"".join(self._chunks), [], 0
        return data


class _UploadAborted(Exception):
    """Makes obstore end a multipart upload."""


class _Upload:
    """Hands lots of bytes to a request that runs in a thread of its own."""

    def __init__(self, put: Callable[[Iterator[bytes]], None]) -> None:
        self._lots: queue.Queue[bytes | None] = queue.Queue(QUEUED_LOTS)
        self._aborted = False
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(put,), name="polyplex-payload-upload", daemon=True)
        self._thread.start()

    def send(self, lot: bytes) -> None:
        """Queue a lot; waits while two are queued. Raises what ended the upload."""
        if lot:
            self._queue(lot)

    def finish(self) -> None:
        """Wait until all of it has been taken. Raises what ended the upload."""
        self._queue(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        """End it, and wait for the end."""
        self._aborted = True
        with contextlib.suppress(queue.Full):
            self._lots.put_nowait(None)
        self._thread.join()

    def _queue(self, lot: bytes | None) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(queue.Full):
                self._lots.put(lot, timeout=0.1)
                return
        raise self._failure or PayloadStoreFailed("the upload ended early")

    def _run(self, put: Callable[[Iterator[bytes]], None]) -> None:
        try:
            put(self._taken())
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            self._failure = error
        finally:
            self._ended.set()

    def _taken(self) -> Iterator[bytes]:
        while True:
            lot = self._lots.get()
            if self._aborted:
                raise _UploadAborted
            if lot is None:
                return
            yield lot


def _connected(scheme: str, bucket: str, options: Mapping[str, str]) -> Any:
    """An obstore store. Values of options are never part of an error."""
    try:
        from obstore import exceptions
        from obstore import store as stores
    except ImportError:
        raise ConfigError(
            f"a payload store at {scheme}:// needs an extra; run: pip install 'polyplex[cloud]'",
            key="polyplex.payloads.store",
        ) from None
    made: Any = {"s3": stores.S3Store, "gs": stores.GCSStore, "az": stores.AzureStore}[scheme]
    client = dict(_CLIENT_DEFAULTS) | {key: value for key, value in options.items() if key in _CLIENT_KEYS}
    config = {key: value for key, value in options.items() if key not in _CLIENT_KEYS}
    if any(options.get(key, "").startswith("http://") for key in _ENDPOINT_KEYS):
        client.setdefault("allow_http", "true")
    retries = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)}
    try:
        return made(bucket, config=config, client_options=client, retry_config=retries)
    except exceptions.UnknownConfigurationKeyError:
        unknown = ", ".join(sorted(config))
        raise ConfigError(
            f"one of these is no setting of a {scheme}:// store: {unknown}", key="polyplex.payloads.storeOptions"
        ) from None
    except (exceptions.BaseError, ValueError, TypeError) as error:
        text = _reason(error, hidden=options.values())
        raise ConfigError(
            f"a {scheme}:// store cannot be made of this: {text}", key="polyplex.payloads.storeOptions"
        ) from None


def _reason(error: BaseException, hidden: Iterable[str] = ()) -> str:
    """The first line of an error, without query strings and without the values that are to be hidden."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    text = re.sub(r"\?[^\s\"')]*", "", text)
    for value in hidden:
        if len(value) >= 4:
            text = text.replace(value, "***")
    return text[:300]
