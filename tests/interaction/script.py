"""An MCP server that does as it is told: by its settings, and by tools with special names. Standard library only.

`Script.receive` gets every message; `scripted_server.py` puts it behind stdio, `scripted_http.py` behind HTTP. What it
received is its journal, which the tool `journal` returns: messages are handled in order, so no test has to wait for it.
"""

import json
import os
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Send = Callable[[Json], None]
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
CACHED = {"tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read"}
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
TOOLS = (
    "echo", "journal", "hold", "release", "die", "hang", "ask", "post", "progress", "log", "notify", "change", "update",
    "fail", "error", "result", "delay", "noise", "pid", "rounds", "asks",
    "unlisten",
)  # fmt: skip
QUESTIONS: dict[str, Json] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 5},
    "elicitation/create": {"message": "é?", "requestedSchema": {"type": "object", "properties": {}}},
}
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
    "completions": {},
}


class Script:
    """Settings: `era` (legacy, modern or dual), `capabilities`, lists by member, `pageSize`, `ttlMs`, `cacheScope`,
    `silent` (methods that get no answer), `deadly` (methods that end the process), `broken` (method: result),
    `refuse` (method: error), `refuseOnce` (the same, first time only), `late` (answer discover after initialize),
    `slow` (method: the method whose coming lets it be answered), `asking` (method: questions to ask before),
    `greets` (what to ask after the handshake), `honours` (the only URIs that may be subscribed to), `forgetful`
    (lists whose next cursor is refused, once for each mention).
    """

    def __init__(self, settings: Json, later: Callable[[float, Callable[[], None]], None], general: Send) -> None:
        self.settings = settings
        self.era: str = settings.get("era", "dual")
        self.journal: list[Json] = []
        self.lists: dict[str, list[Json]] = {member: list(settings.get(member, [])) for member in LISTS.values()}
        if "tools" not in settings:
            self.lists["tools"] = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        self.capabilities: Json = settings.get("capabilities", CAPABILITIES)
        self.general = general
        self.later = later
        self.noise: Callable[[str], None] = print
        self.held: dict[str, list[tuple[Any, Send]]] = {}
        self.asked: dict[str, tuple[Any, Send]] = {}
        self.listens: dict[Any, tuple[Json, Send]] = {}
        self.slow: dict[str, str] = dict(settings.get("slow", {}))
        self.slowed: dict[str, list[Callable[[], None]]] = {}
        self.deaf = False
        self.modern = False
        self._modern_ids: set[Any] = set()
        self._late: Callable[[], None] | None = None
        self._refused: set[str] = set()
        self.going_on: dict[str, Callable[[Any], None]] = {}
        self.asks = self.runs = 0
        self._pages = 0

    # -- in
    def receive(self, message: Json, send: Send) -> None:
        """One message; `send` answers it, on its own stream where it has one."""
        self.journal.append(message)
        method = message.get("method")
        if method is None:
            self._answered(message)
        elif method in self.settings.get("deadly", []):
            os._exit(7)
        elif self.deaf or method in self.settings.get("silent", []):
            pass
        elif "id" not in message:
            self._notified(method, message.get("params", {}))
        else:
            self._request(method, message.get("params", {}), message["id"], send)

    def _notified(self, method: str, params: Json) -> None:
        if method == "notifications/initialized" and "greets" in self.settings:
            self._ask(self.settings["greets"], None, lambda message: None, self.general)
        if method == "notifications/cancelled":
            self.listens.pop(params.get("requestId"), None)
            for key, held in self.held.items():
                self.held[key] = [each for each in held if each[0] != params.get("requestId")]

    def _request(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        for answer in self.slowed.pop(method, []):
            answer()
        if method in self.slow:
            again = self.slow.pop(method)
            self.slowed.setdefault(again, []).append(lambda: self._request(method, params, identifier, send))
            return
        once = self.settings.get("refuseOnce", {})
        refusal = self.settings.get("refuse", {}).get(method)
        if method in once and method not in self._refused:
            self._refused.add(method)
            refusal = once[method]
        self.modern = self.era != "legacy" and META + "protocolVersion" in params.get("_meta", {})
        if self.modern:
            self._modern_ids.add(identifier)
        if refusal is not None:
            self.error(identifier, refusal, send)
        elif method in self.settings.get("broken", {}):
            send({"jsonrpc": "2.0", "id": identifier, "result": self.settings["broken"][method]})
        elif method == "initialize":
            self._initialize(params, identifier, send)
        elif method == "server/discover":
            self._discover(identifier, send)
        elif method == "tools/call":
            self._call(params, identifier, send)
        elif method in LISTS:
            self._list(method, params, identifier, send)
        else:
            self._other(method, params, identifier, send)

    def _initialize(self, params: Json, identifier: Any, send: Send) -> None:
        if self.era == "modern":
            data = {"supported": [MODERN], "requested": params.get("protocolVersion")}
            self.error(identifier, {"code": -32022, "message": "no handshake here", "data": data}, send)
        else:
            revision = self.settings.get("revision", params["protocolVersion"])
            self._say(identifier, {"protocolVersion": revision, "serverInfo": self._info()}, send)
        if self._late is not None:
            self._late()

    def _discover(self, identifier: Any, send: Send) -> None:
        if self.era == "legacy":
            self.error(identifier, {"code": -32601, "message": "Method not found"}, send)
            return
        meta = {META + "serverInfo": self._info()}
        result = {"supportedVersions": [MODERN], "ttlMs": 1000, "cacheScope": "public", "resultType": "complete"}

        def answer() -> None:
            self._say(identifier, result | {"_meta": meta}, send)

        if self.settings.get("late"):
            self._late = answer
        else:
            answer()

    def _say(self, identifier: Any, members: Json, send: Send) -> None:
        result = members | {"capabilities": self.capabilities}
        if "instructions" in self.settings:
            result["instructions"] = self.settings["instructions"]
        send({"jsonrpc": "2.0", "id": identifier, "result": result})

    def _info(self) -> Json:
        return {"name": self.settings.get("name", "scripted"), "version": "1"}

    def _list(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        entries = self.lists[LISTS[method]]
        size = self.settings.get("pageSize", len(entries) or 1)
        cursor = params.get("cursor")
        if cursor is not None and method in self.settings.get("forgetful", []):
            self.settings["forgetful"].remove(method)
            self.error(identifier, {"code": -32602, "message": "this cursor has expired"}, send)
            return
        start = 0 if cursor is None else int(cursor or size)
        result: Json = {LISTS[method]: entries[start : start + size]}
        if start + size < len(entries):
            result["nextCursor"] = "" if start == 0 and self.settings.get("emptyCursor") else str(start + size)
        self.answer(identifier, result, send, method)

    def _other(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        questions = self.settings.get("asking", {}).get(method)
        if questions:
            self._ask_all(questions, 1, [], None, lambda told: self._plain(method, params, identifier, send), send)
        else:
            self._plain(method, params, identifier, send)

    def _plain(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        if method == "subscriptions/listen":
            self._listen(params, identifier, send)
        elif method == "prompts/get":
            messages = self.settings.get("messages", [{"role": "user", "content": {"type": "text", "text": "hi"}}])
            self.answer(identifier, {"messages": messages}, send)
        elif method == "resources/read":
            self._read(params["uri"], identifier, send)
        elif method == "completion/complete":
            self.answer(identifier, {"completion": {"values": [json.dumps(params["ref"])]}}, send)
        elif not self.modern and method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
            self.answer(identifier, {}, send)
        else:
            self.error(identifier, {"code": -32601, "message": f"unknown method {method}"}, send)

    def _read(self, uri: str, identifier: Any, send: Send) -> None:
        if "missing" in uri:
            code = -32602 if self.modern else -32002
            self.error(identifier, {"code": code, "message": "no such resource", "data": {"uri": uri}}, send)
        else:
            self.answer(identifier, {"contents": [{"uri": uri, "text": uri}]}, send, "resources/read")

    def _listen(self, params: Json, identifier: Any, send: Send) -> None:
        wanted = dict(params.get("notifications", {}))
        if "honours" in self.settings:
            uris = [uri for uri in wanted.get("resourceSubscriptions", []) if uri in self.settings["honours"]]
            wanted["resourceSubscriptions"] = uris
        self.listens[identifier] = (wanted, send)
        self.notify("notifications/subscriptions/acknowledged", {"notifications": wanted}, send, identifier)

    # -- out
    def answer(self, identifier: Any, result: Json, send: Send, method: str = "") -> None:
        """A result, with the members that a modern client wants."""
        if identifier in self._modern_ids:
            self._modern_ids.discard(identifier)
            result = {"resultType": "complete"} | result
            if method in CACHED:
                result["ttlMs"] = self.settings.get("ttlMs", 5000)
                result["cacheScope"] = self.settings.get("cacheScope", "public")
            result["_meta"] = {META + "serverInfo": self._info()} | result.get("_meta", {})
        send({"jsonrpc": "2.0", "id": identifier, "result": result})

    def error(self, identifier: Any, error: Json, send: Send) -> None:
        """An error."""
        send({"jsonrpc": "2.0", "id": identifier, "error": error})

    def text(self, identifier: Any, value: object, send: Send) -> None:
        """A tool result with a value as JSON text."""
        self.answer(identifier, {"content": [{"type": "text", "text": json.dumps(value)}]}, send)

    def notify(self, method: str, params: Json, send: Send, subscription: Any = None) -> None:
        """A notification."""
        if subscription is not None:
            params = params | {"_meta": params.get("_meta", {}) | {META + "subscriptionId": subscription}}
        send({"jsonrpc": "2.0", "method": method, "params": params})

    def publish(self, method: str, params: Json, wanted: Callable[[Json], object]) -> None:
        """To every listen stream that wants it, and to a legacy client."""
        streams = [(key, send) for key, (filters, send) in self.listens.items() if wanted(filters)]
        for identifier, send in streams:
            self.notify(method, params, send, identifier)
        if not self.modern:
            self.notify(method, params, self.general)

    def _answered(self, message: Json) -> None:
        go_on = self.going_on.pop(message["id"], None)
        if go_on is not None:
            go_on(message.get("result", message.get("error")))
            return
        identifier, send = self.asked.pop(message["id"], (None, None))
        if send is not None:
            answer = {key: message[key] for key in ("result", "error") if key in message}
            self.text(identifier, answer, send)

    # -- tools
    def _call(self, params: Json, identifier: Any, send: Send) -> None:
        given = params.get("arguments", {})
        tool = getattr(self, "tool_" + params["name"], None)
        if tool is None:
            self.text(identifier, {"called": params}, send)
        else:
            tool(given, params, identifier, send)

    def tool_echo(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.text(identifier, params, send)

    def tool_pid(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.text(identifier, os.getpid(), send)

    def tool_journal(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.text(identifier, self.journal, send)

    def tool_hold(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.held.setdefault(given.get("key", ""), []).append((identifier, send))

    def tool_release(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        held = self.held.pop(given.get("key", ""), [])
        for each, way in held:
            self.text(each, "released", way)
        self.text(identifier, len(held), send)

    def tool_die(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        os._exit(given.get("code", 3))

    def tool_hang(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.deaf = True

    def tool_ask(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self._ask(given, identifier, send, send)

    def tool_asks(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Asks all `questions` at once, `rounds` times over; with `then`, is held afterwards under that key."""
        token = params.get("_meta", {}).get("progressToken")
        self.runs += 1

        def done(told: list[Any]) -> None:
            if "then" in given:
                self.held.setdefault(given["then"], []).append((identifier, send))
                return
            self.text(identifier, {"runs": self.runs, "told": told}, send)

        self._ask_all(given["questions"], given.get("rounds", 1), [], token, done, send)

    def _ask_all(
        self,
        questions: list[Json],
        rounds: int,
        told: list[Any],
        token: Any,
        done: Callable[[list[Any]], None],
        send: Send,
    ) -> None:
        if not rounds:
            done(told)
            return
        answers: list[Any] = [None] * len(questions)
        missing = set(range(len(questions)))

        def answered(number: int, answer: Any) -> None:
            answers[number] = answer
            missing.discard(number)
            if token is not None:
                self.notify("notifications/progress", {"progressToken": token, "progress": len(told) + 1}, send)
            if not missing:
                self._ask_all(questions, rounds - 1, [*told, answers], token, done, send)

        for number, question in enumerate(questions):
            self.asks += 1
            key = f"asks-{self.asks}"
            self.going_on[key] = lambda answer, number=number: answered(number, answer)
            send({"jsonrpc": "2.0", "id": key, "method": question["method"], "params": question.get("params", {})})

    def tool_rounds(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Wants input in as many rounds as given (2026-07-28), then tells what it was told in the last."""
        done = int(params.get("requestState", "0"))
        if done >= given["rounds"]:
            self.text(identifier, params.get("inputResponses"), send)
            return
        result: Json = {
            "resultType": "input_required",
            "inputRequests": given["questions"],
            "requestState": str(done + 1),
        }
        send({"jsonrpc": "2.0", "id": identifier, "result": result})

    def tool_post(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """As `ask`, but the tool has answered before."""
        self.text(identifier, "posted", send)
        self._ask(given, None, lambda message: None, self.general)

    def _ask(self, given: Json, identifier: Any, answer: Send, way: Send) -> None:
        key = f"ask-{len(self.journal)}:{given['method']}"  # the journal tells by the id what was answered
        self.asked[key] = (identifier, answer)
        params = given.get("params", QUESTIONS.get(given["method"], {}))
        way({"jsonrpc": "2.0", "id": key, "method": given["method"], "params": params})

    def tool_progress(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """`count` notices; then the answer, or with `hold` none until it is released."""
        token = params.get("_meta", {}).get("progressToken")
        for step in range(given.get("count", 1)):
            if token is not None:
                self.notify("notifications/progress", {"progressToken": token, "progress": step + 1, "x": "kept"}, send)
        if "hold" in given:
            self.held.setdefault(given["hold"], []).append((identifier, send))
        else:
            self.text(identifier, token, send)

    def tool_log(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.notify("notifications/message", {"level": given["level"], "data": given.get("data")}, send)
        self.text(identifier, "logged", send)

    def tool_notify(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.notify(given["method"], given.get("params", {}), self.general)
        self.text(identifier, "notified", send)

    def tool_change(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Put `entries` in place of a list, and say so `times` times."""
        member = given["member"]
        if "entries" in given:
            self.lists[member] = given["entries"]
        kind = "resources" if member == "resourceTemplates" else member
        for _ in range(given.get("times", 1)):
            key = f"{kind}ListChanged"
            self.publish(f"notifications/{kind}/list_changed", {}, lambda filters, key=key: filters.get(key))
        self.text(identifier, "changed", send)

    def tool_unlisten(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """End all listen streams, as `how` says: with a result, or as taken back."""
        for each, (_, way) in self.listens.items():
            if given["how"] == "result":
                self.answer(each, {"_meta": {META + "subscriptionId": each}}, way)
            else:
                way({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": each}})
        count = len(self.listens)
        self.listens.clear()
        self.text(identifier, count, send)

    def tool_update(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        uri = given["uri"]
        self.publish(
            "notifications/resources/updated",
            {"uri": uri},
            lambda filters: uri in filters.get("resourceSubscriptions", []),
        )
        self.text(identifier, "updated", send)

    def tool_fail(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.answer(identifier, {"content": [{"type": "text", "text": "it failed"}], "isError": True}, send)

    def tool_error(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.error(identifier, given, send)

    def tool_result(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.answer(identifier, given, send)

    def tool_delay(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.later(given["seconds"], lambda: self.text(identifier, given.get("value"), send))

    def tool_noise(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        for line in given.get("lines", []):
            self.noise(line)
        self.text(identifier, "quiet again", send)
