"""Messages against the JSON schema of the revision they are sent in, and against what no schema can say.

The schemas let every object have members that they do not know, so members and error codes of the other era are looked
for by name.
"""

import functools
import json
from pathlib import Path
from typing import Any, Final, Literal

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

Json = dict[str, Any]
Sender = Literal["client", "server"]
FOLDER: Final = Path(__file__).parent.parent / "schemas"
REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
LATEST_LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
TASKS: Final = "ext-tasks"
RESERVED: Final = "io.modelcontextprotocol/"

RESULTS: Final = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "sampling/createMessage": "CreateMessageResult",
    "elicitation/create": "ElicitResult",
    "roots/list": "ListRootsResult",
    "tasks/get": "GetTaskResult",
    "tasks/result": "GetTaskPayloadResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
}
TASK_METHODS: Final = {
    ("client", "tasks/get"): "GetTaskRequest",
    ("client", "tasks/update"): "UpdateTaskRequest",
    ("client", "tasks/cancel"): "CancelTaskRequest",
    ("server", "notifications/tasks"): "TaskStatusNotification",
}
TASK_RESULTS: Final = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}
_MODERN_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope", "inputRequests", "requestState")
_MODERN_KEYS: Final = tuple(
    RESERVED + name
    for name in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel", "serverInfo", "subscriptionId")
)
_MODERN_CODES: Final = (-32020, -32021, -32022)
_LEGACY_CODES: Final = (-32002, -32042)


@functools.cache
def document(revision: str) -> Json:
    """The schema of a revision, or of an extension."""
    schema: Json = json.loads((FOLDER / f"{revision}.json").read_text("utf-8"))
    if "definitions" in schema:
        # schema.ts has `number`; the generated schema lost it.
        content = schema["definitions"].get("ElicitResult", {}).get("properties", {}).get("content")
        if content is not None:
            content["additionalProperties"] = {"type": ["string", "number", "boolean"]}
    return schema


def definitions(revision: str) -> Json:
    """The definitions of a schema by name."""
    schema = document(revision)
    return schema["definitions"] if "definitions" in schema else schema["$defs"]


@functools.cache
def validator(revision: str, definition: str) -> Validator:
    """Checks instances of one definition."""
    schema = document(revision)
    key = "definitions" if "definitions" in schema else "$defs"
    kind = Draft7Validator if key == "definitions" else Draft202012Validator
    return kind({"$ref": f"#/{key}/{definition}", key: schema[key]})


@functools.cache
def methods(revision: str, sender: Sender, kind: Literal["Request", "Notification"]) -> dict[str, str]:
    """The methods that a side may send in a revision, with the definition of each."""
    known = definitions(revision)
    union = known.get(f"{sender.title()}{kind}", {"anyOf": []})
    names = [each["$ref"].rsplit("/", 1)[1] for each in union.get("anyOf", [])]
    if "anyOf" not in union:
        names = [f"{sender.title()}{kind}"]
    return {known[name]["properties"]["method"]["const"]: name for name in names}


@functools.cache
def _known_anywhere() -> frozenset[str]:
    found: set[str] = set()
    for revision in REVISIONS:
        for sender in ("client", "server"):
            found |= {*methods(revision, sender, "Request"), *methods(revision, sender, "Notification")}
    return frozenset(found)


def problems(message: Any, revision: str, sender: Sender, answers: str | None = None) -> list[str]:
    """What is wrong with a message. `answers` is the method of the request that a response belongs to."""
    if isinstance(message, list):
        if revision != "2025-03-26":
            return [f"a batch does not exist in {revision}"]
        return [problem for each in message for problem in problems(each, revision, sender, answers)]
    if not isinstance(message, dict):
        return [f"not an object: {str(message)[:80]}"]
    if "method" in message:
        return _call(message, revision, sender)
    if "error" in message:
        return _error(message, revision, sender)
    return _result(message, revision, answers)


def _check(instance: Any, revision: str, definition: str) -> list[str]:
    error = best_match(validator(revision, definition).iter_errors(instance))
    if error is None:
        return []
    where = "/".join(str(step) for step in error.absolute_path) or "the whole"
    return [f"no {definition} of {revision}: {where}: {error.message[:300]}"]


def _call(message: Json, revision: str, sender: Sender) -> list[str]:
    kind: Literal["Request", "Notification"] = "Request" if "id" in message else "Notification"
    method = message["method"]
    found = _check(message, revision, f"JSONRPC{kind}")
    definition = methods(revision, sender, kind).get(method)
    if definition is not None:
        found += _check(message, revision, definition)
    elif revision == MODERN and (sender, method) in TASK_METHODS:
        found += _check(message, TASKS, TASK_METHODS[sender, method])
        if kind == "Request":
            found += _check(message.get("params"), revision, "RequestParams")
    elif method in _known_anywhere():
        found.append(f"no {sender} sends the {kind.lower()} {method} in {revision}")
    params = message.get("params")
    if isinstance(params, dict) and revision != MODERN:
        found += _foreign_meta(params, revision)
    return found


def _error(message: Json, revision: str, sender: Sender) -> list[str]:
    """JSON-RPC 2.0, section 5, wants the id null where a request was unreadable; the schemas know no such id."""
    shown = {**message, "id": 0} if message.get("id", 0) is None else message
    known = definitions(revision)
    found = _check(shown, revision, "JSONRPCError" if "JSONRPCError" in known else "JSONRPCErrorResponse")
    error = message["error"]
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(code, int):
        return found
    reserved = -32099 <= code <= -32020 and code not in _MODERN_CODES
    if revision == MODERN and (code in _LEGACY_CODES or reserved):
        found.append(f"the error code {code} must not be sent in {revision}")
    if revision != MODERN and code in _MODERN_CODES:
        found.append(f"the error code {code} does not exist in {revision}")
    if code == -32042 and revision != LATEST_LEGACY:
        found.append(f"the error code {code} does not exist in {revision}")
    return found


def _result(message: Json, revision: str, answers: str | None) -> list[str]:
    known = definitions(revision)
    found = _check(
        message, revision, "JSONRPCResultResponse" if "JSONRPCResultResponse" in known else "JSONRPCResponse"
    )
    if answers is None:
        return [*found, f"answers no request: id {message.get('id')!r}"]
    result = message["result"]
    source, definition = _definition(answers, result, revision)
    found += _check(result, source, definition)
    if isinstance(result, dict) and revision != MODERN:
        leaked = [name for name in _MODERN_MEMBERS if name in result]
        found += [f"{name} does not exist in {revision}" for name in leaked]
        found += _foreign_meta(result, revision)
    return found


def _definition(method: str, result: Any, revision: str) -> tuple[str, str]:
    """The schema and the definition of a result."""
    kind = result.get("resultType") if isinstance(result, dict) and revision == MODERN else None
    if kind == "input_required":
        return revision, "InputRequiredResult"
    if kind == "task":
        return TASKS, "CreateTaskResult"
    if revision == MODERN and method in TASK_RESULTS:
        return TASKS, TASK_RESULTS[method]
    if revision == LATEST_LEGACY and isinstance(result, dict) and isinstance(result.get("task"), dict):
        return revision, "CreateTaskResult"
    name = RESULTS.get(method, "EmptyResult")
    return revision, name if name in definitions(revision) else "EmptyResult"


def _foreign_meta(members: Json, revision: str) -> list[str]:
    meta = members.get("_meta")
    keys = meta if isinstance(meta, dict) else {}
    return [f"the key {key} of _meta does not exist in {revision}" for key in _MODERN_KEYS if key in keys]
