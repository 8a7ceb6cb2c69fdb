"""Tasks for `script.Script`: a server of either era that makes tasks of its tool `job`. Standard library only.

Settings: `tasks` is the `execution.taskSupport` of `job` for legacy clients; `needs` refuses modern clients that do not
declare the extension; `immediate` answers modern clients without a task; `undeclared` hides the capability; `listing`
is False for a legacy server without `tasks/list`; `onGet` sends a legacy task's questions on the general stream.

Arguments of `job`: `polls` (how often `tasks/get` finds it working, 0 by default), `hold` (it works until the tool
`finish` is called), `questions` (asked before it ends), `result`, `error`, `poll` (the poll interval in milliseconds),
`ttl`, `say` (status messages, one for each poll). Its text is the answers to its questions.
"""

import json
from collections.abc import Callable
from typing import Any

try:
    from tests.interaction.script import CAPABILITIES, META, Json, Script, Send
except ImportError:  # as a program of its own, see scripted_server.py
    from script import CAPABILITIES, META, Json, Script, Send  # pyright: ignore[reportMissingImports]

EXTENSION = META + "tasks"
RELATED = META + "related-task"
THEN = "2026-01-01T00:00:00Z"
CORE: Json = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
TERMINAL = ("completed", "failed", "cancelled")


class Task:
    """One task; `waiting` are the requests for its result."""

    def __init__(self, identifier: str, given: Json, ttl: Any, token: Any) -> None:
        self.id = identifier
        self.given = given
        self.ttl = ttl
        self.token = token
        self.status = "working"
        self.polls: int = given.get("polls", 0)
        self.open: Json = {f"q{number}": each for number, each in enumerate(given.get("questions", []))}
        self.answers: Json = {}
        self.sent: set[str] = set()
        self.said: list[str] = list(given.get("say", []))
        self.message: str | None = None
        self.waiting: list[tuple[Any, Send]] = []
        self.result: Json | None = None
        self.error: Json | None = None

    def step(self) -> None:
        """What becomes of it where nothing holds it up."""
        if self.status in TERMINAL or self.given.get("hold"):
            return
        if self.polls > 0:
            self.polls -= 1
            self.message = self.said.pop(0) if self.said else self.message
        elif self.open:
            self.status = "input_required"
        else:
            self.finish()

    def finish(self) -> None:
        """The end."""
        self.error = self.given.get("error")
        text = json.dumps(self.answers, sort_keys=True)
        self.result = self.given.get("result", {"content": [{"type": "text", "text": text}]})
        failed = self.error is not None
        self.status = "failed" if failed else "completed"

    def answer(self, key: str, result: Json) -> None:
        """An answer to a question."""
        if self.open.pop(key, None) is not None:
            self.answers[key] = result
            if not self.open and self.status == "input_required":
                self.status = "working"


class TaskScript(Script):
    """`Script` with tasks, where its settings say `tasks`."""

    def __init__(self, settings: Json, later: Callable[[float, Callable[[], None]], None], general: Send) -> None:
        super().__init__(settings, later, general)
        self.tasks: dict[str, Task] = {}
        self.task_asks: dict[str, tuple[Task, str]] = {}
        self.client_tasks: dict[str, Callable[[Json], None]] = {}
        if "tasks" not in settings:
            return
        self.lists["tools"] += [{"name": name, "inputSchema": {"type": "object"}} for name in ("job", "finish", "run")]
        job = next(tool for tool in self.lists["tools"] if tool["name"] == "job")
        if self.era != "modern" and settings["tasks"]:
            job["execution"] = {"taskSupport": settings["tasks"]}
        if not settings.get("undeclared"):
            core = {key: value for key, value in CORE.items() if key != "list" or settings.get("listing", True)}
            extra: Json = {} if self.era == "modern" else {"tasks": core}
            extra |= {} if self.era == "legacy" else {"extensions": {EXTENSION: {}}}
            self.capabilities = settings.get("capabilities", CAPABILITIES) | extra

    # -- requests
    def _other(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        serve = getattr(self, "serve_" + method.removeprefix("tasks/"), None)
        if "tasks" in self.settings and method.startswith("tasks/") and serve is not None:
            if self.modern and not self._declared(params):
                self.error(identifier, self._missing(), send)
            elif method != "tasks/list" and params["taskId"] not in self.tasks:
                self.error(identifier, {"code": -32602, "message": "Task not found"}, send)
            else:
                serve(params, identifier, send)
        else:
            super()._other(method, params, identifier, send)

    def _declared(self, params: Json) -> bool:
        return EXTENSION in params["_meta"][META + "clientCapabilities"].get("extensions", {})

    def _missing(self) -> Json:
        data = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        return {"code": -32021, "message": "Missing required client capability", "data": data}

    def tool_job(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Work, as a task where the client can or wants to."""
        wanted = self._declared(params) if self.modern else "task" in params
        if not wanted and (self.settings.get("needs") if self.modern else self.settings["tasks"] == "required"):
            refusal = self._missing() if self.modern else {"code": -32601, "message": "a task is required"}
            self.error(identifier, refusal, send)
            return
        token = params.get("_meta", {}).get("progressToken")
        task = Task(
            f"task-{len(self.tasks) + 1}", given, given.get("ttl", params.get("task", {}).get("ttl", 60000)), token
        )
        if not wanted or (self.modern and self.settings.get("immediate")):
            task.finish()
            self.answer(identifier, task.result or {}, send)
            return
        self.tasks[task.id] = task
        if self.modern:
            send({"jsonrpc": "2.0", "id": identifier, "result": {"resultType": "task"} | self.shape(task)})
        else:
            self.answer(identifier, {"task": self.shape(task), "_meta": {"vendor/x": 1}}, send)

    def tool_finish(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """End all tasks that are held, with progress before, and say so."""
        for task in [task for task in self.tasks.values() if task.status not in TERMINAL]:
            if task.token is not None:
                self.notify("notifications/progress", {"progressToken": task.token, "progress": 1}, self.general)
            if task.open and given.get("ask"):
                task.status = "input_required"
                self._send_questions(task, self.general)
            else:
                task.finish()
            self._changed(task)
        self.text(identifier, "finished", send)

    def tool_run(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Have the client run something as a task (2025-11-25), then ask after it; tells all it was told."""
        told: list[Json] = []
        requests = [(given["method"], given["params"]), *((method, None) for method in given["then"])]

        def proceed() -> None:
            if not requests:
                self.text(identifier, told, send)
                return
            method, request = requests.pop(0)
            if request is None:
                made = told[0].get("result", {}).get("task", {})
                request = {} if method == "tasks/list" else {"taskId": given.get("id") or made.get("taskId")}
            key = f"run-{len(self.journal)}-{len(told)}"
            self.client_tasks[key] = lambda answer: (told.append(answer), proceed())[1]
            send({"jsonrpc": "2.0", "id": key, "method": method, "params": request})

        proceed()

    # -- `tasks/...`
    def serve_get(self, params: Json, identifier: Any, send: Send) -> None:
        task = self.tasks[params["taskId"]]
        task.step()
        if not self.modern and self.settings.get("onGet"):
            self._send_questions(task, self.general)
        self.answer(identifier, self.detailed(task) if self.modern else self.shape(task), send)
        self._settle(task)

    def serve_result(self, params: Json, identifier: Any, send: Send) -> None:
        task = self.tasks[params["taskId"]]
        if self.modern:
            self.error(identifier, {"code": -32601, "message": "no tasks/result"}, send)
            return
        task.polls = 0
        task.step()
        task.waiting.append((identifier, send))
        self._send_questions(task, send)
        self._settle(task)

    def serve_list(self, params: Json, identifier: Any, send: Send) -> None:
        if self.modern or not self.settings.get("listing", True):
            self.error(identifier, {"code": -32601, "message": "no tasks/list"}, send)
            return
        tasks = list(self.tasks.values())
        size = self.settings.get("pageSize", len(tasks) or 1)
        start = int(params.get("cursor", "0"))
        result: Json = {"tasks": [self.shape(task) for task in tasks[start : start + size]]}
        if start + size < len(tasks):
            result["nextCursor"] = str(start + size)
        self.answer(identifier, result, send)

    def serve_update(self, params: Json, identifier: Any, send: Send) -> None:
        task = self.tasks[params["taskId"]]
        for key, answer in params["inputResponses"].items():
            task.answer(key, answer)
        self.answer(identifier, {}, send)

    def serve_cancel(self, params: Json, identifier: Any, send: Send) -> None:
        task = self.tasks[params["taskId"]]
        if not self.modern and task.status in TERMINAL:
            self.error(identifier, {"code": -32602, "message": f"Cannot cancel: already {task.status}"}, send)
            return
        if task.status not in TERMINAL and not task.given.get("stubborn"):
            task.status = "cancelled"
        self.answer(identifier, {} if self.modern else self.shape(task), send)
        self._settle(task)

    # -- shapes
    def shape(self, task: Task) -> Json:
        """The task without what is inlined."""
        ttl, poll = ("ttlMs", "pollIntervalMs") if self.modern else ("ttl", "pollInterval")
        shape: Json = {
            "taskId": task.id,
            "status": task.status,
            "createdAt": THEN,
            "lastUpdatedAt": THEN,
            ttl: task.ttl,
        }
        shape[poll] = task.given.get("poll", 20)
        return shape | ({"statusMessage": task.message} if task.message else {})

    def detailed(self, task: Task) -> Json:
        """The task with what is inlined (the extension)."""
        shape = self.shape(task)
        if task.status == "completed":
            shape["result"] = task.result
        elif task.status == "failed":
            shape["error"] = task.error
        elif task.status == "input_required":
            shape["inputRequests"] = task.open
        return shape

    def _settle(self, task: Task) -> None:
        """Answer the requests for the result of a task that is over."""
        if task.status not in TERMINAL:
            return
        waiting, task.waiting = task.waiting, []
        for identifier, send in waiting:
            if task.error is not None:
                self.error(identifier, task.error, send)
            elif task.status == "cancelled":
                self.error(identifier, {"code": -32603, "message": "Task cancelled"}, send)
            else:
                meta = {"_meta": {RELATED: {"taskId": task.id}}}
                self.answer(identifier, (task.result or {}) | meta, send)

    def _changed(self, task: Task) -> None:
        self._settle(task)
        streams = [(key, send) for key, (wanted, send) in self.listens.items() if task.id in wanted.get("taskIds", [])]
        for identifier, send in streams:
            self.notify("notifications/tasks", self.detailed(task), send, identifier)
        if not self.modern:
            self.notify("notifications/tasks/status", self.shape(task), self.general)

    # -- questions of legacy servers
    def _send_questions(self, task: Task, send: Send) -> None:
        if task.status != "input_required":
            return
        for key, question in task.open.items():
            if key not in task.sent:
                task.sent.add(key)
                identifier = f"{task.id}-{key}"
                self.task_asks[identifier] = (task, key)
                params = question.get("params", {}) | {"_meta": {RELATED: {"taskId": task.id}}}
                send({"jsonrpc": "2.0", "id": identifier, "method": question["method"], "params": params})

    def _answered(self, message: Json) -> None:
        proceed = self.client_tasks.pop(message["id"], None)
        if proceed is not None:
            proceed({key: message[key] for key in ("result", "error") if key in message})
            return
        task, key = self.task_asks.pop(message["id"], (None, ""))
        if task is None:
            super()._answered(message)
            return
        result = message.get("result", {"refused": message.get("error")})
        task.answer(key, {name: value for name, value in result.items() if name != "_meta"})
        if not task.open:
            task.step()
            self._changed(task)
