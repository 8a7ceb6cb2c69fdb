"""Tasks of the scripted peer: of the core in 2025-11-25, as the extension in 2026-07-28."""

import json
from typing import TYPE_CHECKING, Any

from tests.matrix.peer.words import META, TASKS_EXTENSION, Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.matrix.peer.session import Session

    Send = Callable[[Json], None]
TIMES: Json = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
TTL = 60_000
POLL = 20


class Task:
    """One task: `working` for one look, then input where it asks for some, then `completed`."""

    def __init__(self, identifier: str, given: Json) -> None:
        self.identifier = identifier
        self.given = given
        self.status = "working"
        self.looks = 0
        self.asks: dict[str, Json] = dict(given.get("asks", {}))
        self.answers: dict[str, Json] = {}
        self.waiting: list[Callable[[], None]] = []

    def look(self) -> None:
        """Time goes by with each look, so that no test has to wait."""
        self.looks += 1
        if self.status in ("working", "input_required"):
            asking = bool(set(self.asks) - set(self.answers))
            self.status = "input_required" if asking else "completed" if self.looks > 1 else "working"
            if self.given.get("endless") and self.status == "completed":
                self.status = "working"
        if self.over:
            for work in self.waiting:
                work()
            self.waiting = []

    @property
    def over(self) -> bool:
        """Whether the status is a last one."""
        return self.status in ("completed", "cancelled")

    def result(self) -> Json:
        """What the call comes to."""
        value = {"job": self.given.get("key"), "answers": self.answers}
        return {"content": [{"type": "text", "text": json.dumps(value)}]}


class Tasks:
    """The tasks of a session."""

    def __init__(self, session: "Session") -> None:
        self.session = session
        self.tasks: dict[str, Task] = {}

    def job(self, given: Json, params: Json, identifier: Any, send: "Send") -> None:
        """The call of a tool that always makes a task."""
        session = self.session
        if session.modern:
            extensions = session.capabilities(params).get("extensions", {})
            if TASKS_EXTENSION not in extensions:
                data = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
                error = {"code": -32021, "message": "Missing required client capability", "data": data}
                session.error(identifier, error, send)
                return
        elif "task" not in params:
            session.error(identifier, {"code": -32601, "message": "this tool needs to be called as a task"}, send)
            return
        task = Task(f"job {len(self.tasks)}", given)
        self.tasks[task.identifier] = task
        described = self._described(task)
        session.answer(identifier, {"resultType": "task"} | described if session.modern else {"task": described}, send)

    def _described(self, task: Task) -> Json:
        names = ("ttlMs", "pollIntervalMs") if self.session.modern else ("ttl", "pollInterval")
        return {"taskId": task.identifier, "status": task.status} | TIMES | dict(zip(names, (TTL, POLL), strict=True))

    def request(self, method: str, params: Json, identifier: Any, send: "Send") -> None:
        """A request about tasks."""
        if method == "tasks/list":
            self.session.answer(identifier, {"tasks": [self._described(task) for task in self.tasks.values()]}, send)
            return
        task = self.tasks.get(params["taskId"])
        if task is None:
            self.session.error(identifier, {"code": -32602, "message": "no such task"}, send)
            return
        work = method.replace("tasks/", "_")
        getattr(self, work)(task, params, identifier, send)

    def _get(self, task: Task, params: Json, identifier: Any, send: "Send") -> None:
        task.look()
        result = self._described(task)
        if self.session.modern and task.status == "input_required":
            result["inputRequests"] = {key: ask for key, ask in task.asks.items() if key not in task.answers}
        if self.session.modern and task.status == "completed":
            result["result"] = task.result() | {"resultType": "complete"}
        self.session.answer(identifier, result, send)

    def _cancel(self, task: Task, params: Json, identifier: Any, send: "Send") -> None:
        task.status = "cancelled"
        task.look()
        self.session.answer(identifier, {} if self.session.modern else self._described(task), send)

    def _update(self, task: Task, params: Json, identifier: Any, send: "Send") -> None:
        task.answers |= {key: answer for key, answer in params["inputResponses"].items() if key in task.asks}
        self.session.answer(identifier, {}, send)

    def _result(self, task: Task, params: Json, identifier: Any, send: "Send") -> None:
        """Blocks until the task is over; what it asks flows on this stream (2025-11-25, "Tasks")."""
        related = {META + "related-task": {"taskId": task.identifier}}

        def over() -> None:
            if task.status == "cancelled":
                self.session.error(identifier, {"code": -32603, "message": "the task was cancelled"}, send)
            else:
                self.session.answer(identifier, task.result() | {"_meta": related}, send)

        def answered(answers: dict[str, Json]) -> None:
            task.answers |= answers
            finish()

        def finish() -> None:
            task.looks += 1
            task.look()
            if not task.over:
                task.waiting.append(over)
            else:
                over()

        missing = {
            key: {"method": ask["method"], "params": ask.get("params", {}) | {"_meta": related}}
            for key, ask in task.asks.items()
            if key not in task.answers
        }
        if missing and not task.over:
            self.session.ask([missing], params, identifier, send, answered)
        else:
            finish()
