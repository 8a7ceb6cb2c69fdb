"""Tasks in the words of either era.

The core tasks of 2025-11-25 ("Tasks") and the extension `io.modelcontextprotocol/tasks` of the modern era name the
same members differently, and put results, errors and questions into different places. A task is held here as the raw
members of an object, so that what polyplex does not know passes.
"""

from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol.bridge.requests import read_meta, with_meta
from polyplex.protocol.envelope import CAPABILITIES_KEY, PREFIX
from polyplex.protocol.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    Fields,
    decode_error,
    decode_fields,
    decode_text,
    encode_json,
)
from polyplex.protocol.revisions import R2025_11_25, Era

EXTENSION: Final = PREFIX + "tasks"
RELATED_KEY: Final = PREFIX + "related-task"
RELATED_MARK: Final = b"related-task"
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
STATUSES: Final = TERMINAL | {"working", "input_required"}
SUPPORTED: Final = frozenset({"optional", "required"})
MAX_ID_CHARACTERS: Final = 4096
TASK_MARK: Final = b'"task"'

_RENAMED: Final = {"ttl": "ttlMs", "pollInterval": "pollIntervalMs"}
_BACK: Final = {modern: legacy for legacy, modern in _RENAMED.items()}
_INLINED: Final = ("result", "error", "inputRequests")
_REQUIRED_EXTENSION: Final[dict[str, object]] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


class Created(NamedTuple):
    """A task that a server has just made: its own id, the members, and the `_meta` of the result."""

    local: str
    task: Fields
    meta: Fields


class _Handle(msgspec.Struct):
    resultType: Raw | UnsetType = UNSET
    task: Raw | UnsetType = UNSET


_decode_handle = msgspec.json.Decoder(_Handle).decode


# -- capabilities
def offers_tasks(era: Era, revision: str, capabilities: Fields) -> bool:
    """Whether a server with these capabilities makes tasks of tool calls."""
    if era is Era.MODERN:
        return EXTENSION in _object(capabilities, "extensions")
    if revision != R2025_11_25:
        return False
    requests = _object(_object(capabilities, "tasks"), "requests")
    return "call" in _object(requests, "tools")


def lists_tasks(capabilities: Fields) -> bool:
    """Whether a server of 2025-11-25 serves `tasks/list`."""
    return "list" in _object(capabilities, "tasks")


def takes_tasks(capabilities: Fields, method: str) -> bool:
    """Whether a client with these capabilities makes a task of such a request of a server (2025-11-25)."""
    requests = _object(_object(capabilities, "tasks"), "requests")
    kind, _, verb = method.partition("/")
    return verb in _object(requests, kind)


def declares_extension(fields: Fields) -> bool:
    """Whether a modern request's `_meta` declares the extension."""
    return EXTENSION in _object(_object(read_meta(fields), CAPABILITIES_KEY), "extensions")


def with_extension(capabilities: bytes) -> bytes:
    """Raw client capabilities that declare the extension too."""
    fields = decode_fields(capabilities)
    extensions = _object(fields, "extensions")
    return encode_json(fields | {"extensions": Raw(encode_json({EXTENSION: Raw(b"{}")} | extensions))})


def require_extension(fields: Fields) -> None:
    """Raise `RpcError` -32021 unless the request declares the extension ("Protocol Errors")."""
    if not declares_extension(fields):
        message = f"the client does not declare the extension {EXTENSION}"
        raise RpcError(MISSING_CAPABILITY, message, encode_json(_REQUIRED_EXTENSION))


def needs_extension(error: bytes) -> bool:
    """Whether an error says that the request needs the extension (-32021)."""
    if b"-32021" not in error:
        return False
    decoded = decode_error(error)
    if decoded.code != MISSING_CAPABILITY or decoded.data is UNSET:
        return False
    data = bytes(decoded.data)
    try:
        required = _object(decode_fields(data), "requiredCapabilities")
        return EXTENSION in _object(required, "extensions")
    except RemoteProtocolError:
        return False


def not_a_task_tool(name: str) -> RpcError:
    """The answer to a task-augmented call of a tool that makes no tasks (2025-11-25, "Tool-Level Negotiation")."""
    return RpcError(METHOD_NOT_FOUND, f"the tool {name!r} cannot be called as a task")


def not_found(what: str = "task not found") -> RpcError:
    """The answer to a task id that means nothing, to both eras."""
    return RpcError(INVALID_PARAMS, what)


def shown_tool(raw: bytes, support: str, era: Era, *, able: bool, tasks: bool) -> bytes:
    """A listed tool for a client that knows core tasks (`tasks`) or not; `able` where its server makes tasks.

    polyplex waits for a task on behalf of clients that want none, so nothing that it offers is `required`.
    """
    if era is Era.MODERN and not (able and tasks):
        return raw
    if era is Era.LEGACY and b'"execution"' not in raw:
        return raw
    fields = decode_fields(raw)
    execution = _object(fields, "execution")
    execution.pop("taskSupport", None)
    if tasks and able and (era is Era.MODERN or support in SUPPORTED):
        execution["taskSupport"] = Raw(b'"optional"')
    if execution and tasks:
        return encode_json(fields | {"execution": Raw(encode_json(execution))})
    return encode_json({key: value for key, value in fields.items() if key != "execution"})


# -- what servers answer
def created(result: bytes, era: Era) -> Created | None:
    """The task in the answer to a tool call; None where the answer is no task. Raises `RemoteProtocolError`."""
    if TASK_MARK not in result:
        return None
    try:
        handle = _decode_handle(result)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"expected an object: {error}") from None
    if era is Era.MODERN:
        if handle.resultType is UNSET or bytes(handle.resultType) != TASK_MARK:
            return None
        task = decode_fields(result)
        meta = read_meta(task)
    else:
        if handle.task is UNSET or not bytes(handle.task).startswith(b"{"):
            return None
        task = decode_fields(handle.task)
        meta = read_meta(decode_fields(result))
    status(task)
    return Created(local_id(task), task, meta)


def local_id(task: Fields) -> str:
    """The id of a task. Raises `RemoteProtocolError` where there is none that can be used."""
    identifier = decode_text(task.get("taskId", Raw(b"null")))
    if not identifier or len(identifier) > MAX_ID_CHARACTERS:
        raise RemoteProtocolError("the taskId is empty or too long")
    return identifier


def status(task: Fields) -> str:
    """The status of a task. Raises `RemoteProtocolError` for one that no revision knows."""
    text = decode_text(task.get("status", Raw(b"null")))
    if text not in STATUSES:
        raise RemoteProtocolError(f"unknown task status {text!r}")
    return text


# -- from one era's shape to the other's
def renamed(task: Fields, public: str) -> Fields:
    """A task of the same era under its public id."""
    return task | {"taskId": Raw(encode_json(public))}


def to_core(task: Fields, public: str, now: str) -> Fields:
    """A task of the extension as one of 2025-11-25: without what is inlined, which `tasks/result` gives.

    A tool result with `isError` means `failed` there, `completed` here ("Task Execution Errors" of both).
    """
    left_out = (*_INLINED, "resultType", "requestState", "_meta")
    core = {_BACK.get(key, key): value for key, value in task.items() if key not in left_out}
    if status(task) == "completed" and is_failure(task.get("result")):
        core["status"] = Raw(b'"failed"')
    return _whole(core, public, now, "ttl")


def to_flat(task: Fields, public: str, now: str) -> Fields:
    """A task of 2025-11-25 as one of the extension, still without what has to be inlined."""
    flat = {_RENAMED.get(key, key): value for key, value in task.items() if key not in (*_INLINED, "_meta")}
    for name in _BACK:
        if name in flat:
            flat[name] = _milliseconds(flat[name])
    if bytes(flat.get("pollIntervalMs", Raw(b""))) in (b"null", b"0"):
        del flat["pollIntervalMs"]
    return _whole(flat, public, now, "ttlMs")


def _whole(task: Fields, public: str, now: str, ttl: str) -> Fields:
    """Every member that the schema wants; `now` stands in for times that the server left out."""
    stamp = Raw(encode_json(now))
    whole = {"taskId": Raw(encode_json(public))} | {key: value for key, value in task.items() if key != "taskId"}
    whole.setdefault("createdAt", stamp)
    whole.setdefault("lastUpdatedAt", whole["createdAt"])
    whole.setdefault(ttl, Raw(b"null"))
    return whole


def _milliseconds(raw: Raw) -> Raw:
    """A duration as an integer, which the extension demands; null stays, and what is none becomes null."""
    try:
        value = msgspec.json.decode(raw, type=float | None)
    except msgspec.DecodeError:
        value = None
    return Raw(b"null") if value is None or not 0 <= value < 2**53 else Raw(b"%d" % round(value))


def is_failure(result: Raw | None) -> bool:
    """Whether a tool result says that the tool failed."""
    return result is not None and bytes(_object({"r": result}, "r").get("isError", Raw(b""))) == b"true"


def finished(flat: Fields, result: bytes | None, error: bytes | None) -> Fields:
    """A terminal task of the extension with its outcome inlined; a cancelled one has none."""
    if status(flat) == "cancelled":
        return flat
    if result is not None:
        return flat | {"status": Raw(b'"completed"'), "result": Raw(result)}
    return flat | {"status": Raw(b'"failed"'), "error": Raw(error or b"{}")}


def created_core(task: Fields, meta: Fields) -> bytes:
    """A `CreateTaskResult` of 2025-11-25."""
    return encode_json(with_meta({"task": Raw(encode_json(task))}, meta))


def created_flat(task: Fields, meta: Fields) -> bytes:
    """A `CreateTaskResult` of the extension."""
    kept = {key: value for key, value in task.items() if key not in (*_INLINED, "requestState")}
    return encode_json(with_meta({"resultType": Raw(TASK_MARK)} | kept, meta))


def complete(fields: Fields) -> bytes:
    """The answer to a `tasks/` request of the extension."""
    return encode_json({"resultType": Raw(b'"complete"')} | fields)


# -- `io.modelcontextprotocol/related-task`
def related_id(params: bytes | None) -> str | None:
    """The id of the task that a legacy message belongs to; None where it names none."""
    if params is None or RELATED_MARK not in params:
        return None
    try:
        related = _object(read_meta(decode_fields(params)), RELATED_KEY)
        return decode_text(related["taskId"]) if "taskId" in related else None
    except RemoteProtocolError:
        return None


def with_related(fields: Fields, public: str | None) -> Fields:
    """A result or params that name the task under this id, or, with None, that name no task."""
    meta = {key: value for key, value in read_meta(fields).items() if key != RELATED_KEY}
    if public is not None:
        meta[RELATED_KEY] = Raw(encode_json({"taskId": public}))
    return with_meta(fields, meta)


def _object(fields: Fields, name: str) -> Fields:
    """A member as an object; anything else counts as an empty one."""
    raw = fields.get(name)
    return decode_fields(raw) if raw is not None and bytes(raw)[:1] == b"{" else {}
