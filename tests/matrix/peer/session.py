"""A server of one revision, exactly: what that revision has, and nothing of another. Standard library only.

Whatever reaches it that the revision does not have is refused, and recorded as a violation, which fails the test.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.matrix.peer import content, tasks
from tests.matrix.peer.words import CLIENT_METHODS, META, MODERN, R2, R3, Json, since

Send = Callable[[Json], None]
Finish = Callable[[dict[str, Json]], None]
PAGE = 400
CACHED = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read")
ELICITED: Json = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ASKED_ELSEWHERE: list[dict[str, Json]] = [{"where": {"method": "roots/list", "params": {}}}]


class Session:
    """One session of a legacy server, or all requests of a modern one. `general` is the stream of no request."""

    def __init__(self, revision: str, general: Send, record: Callable[[Json], None]) -> None:
        self.revision = revision
        self.modern = revision == MODERN
        self.general = general
        self.record = record
        self.declared: Json = {}
        self.level = "" if self.modern else "debug"
        self.journal: list[Json] = []
        self.lists: dict[str, list[Json]] = content.lists(revision)
        self.listens: list[tuple[Any, Json, Send]] = []
        self.subscribed: set[str] = set()
        self.waiting: dict[str, Callable[[Json], None]] = {}
        self.held: dict[str, tuple[str, Any, Send]] = {}
        self.cancelled: set[str] = set()
        self.watchers: dict[str, list[Callable[[], None]]] = {}
        self.granted: set[str] = set()
        self.tasks = tasks.Tasks(self)
        self._asks = 0

    # -- in
    def receive(self, message: Json, send: Send) -> None:
        """One message; `send` writes on the stream that belongs to it."""
        self.journal.append(message)
        method = message.get("method")
        if method is None:
            answer = self.waiting.pop(message["id"], None)
            if answer is None:
                self.violation(f"a response to nothing: {message}")
            else:
                answer(message)
            return
        if self.revision not in CLIENT_METHODS.get(method, ()):
            if method not in ("initialize", "server/discover") and method != "no/such/method":
                self.violation(f"{method} does not exist in {self.revision}")
            if "id" in message:
                self.error(message["id"], self._unknown(method, message.get("params", {})), send)
            return
        params = message.get("params", {})
        if "id" in message and self._has_meta_of_its_era(method, params, message["id"], send):
            self.request(method, params, message["id"], send)
        elif "id" not in message:
            self.notification(method, params)

    def _unknown(self, method: str, params: Json) -> Json:
        if method == "initialize":
            data = {"supported": [MODERN], "requested": params.get("protocolVersion")}
            return {"code": -32022, "message": "no handshake here", "data": data}
        return {"code": -32601, "message": f"Method not found: {method}"}

    def violation(self, text: str) -> None:
        """Something of another revision has come."""
        self.record({"violation": text})

    def _has_meta_of_its_era(self, method: str, params: Json, identifier: Any, send: Send) -> bool:
        meta = params.get("_meta", {})
        reserved = {key for key in meta if key.startswith(META) and key != META + "related-task"}
        if not self.modern:
            if reserved:
                self.violation(f"{method} carries {sorted(reserved)}")
            return True
        if {META + "protocolVersion", META + "clientCapabilities"} <= reserved:
            return True
        self.violation(f"{method} lacks its envelope: {params}")
        self.error(identifier, {"code": -32602, "message": "_meta is not complete"}, send)
        return False

    def notification(self, method: str, params: Json) -> None:
        """A notification."""
        if method == "notifications/cancelled":
            self.cancel(params.get("requestId"))

    def cancel(self, identifier: Any, stream: Send | None = None) -> None:
        """The client has given a request up. Over modern HTTP its stream tells it from others with the same id."""
        self.listens = [each for each in self.listens if each[0] != identifier or stream not in (None, each[2])]
        for key, held in list(self.held.items()):
            if held[1] == identifier and stream in (None, held[2]):
                del self.held[key]
                self.cancelled.add(key)
                for tell in self.watchers.pop(key, []):
                    tell()

    def request(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        """A request of the revision."""
        name = "on_" + method.replace("/", "_")
        if method in CACHED[:4]:
            self.list(method, params, identifier, send)
        elif method.startswith("tasks/"):
            self.tasks.request(method, params, identifier, send)
        else:
            getattr(self, name)(params, identifier, send)

    # -- out
    def answer(self, identifier: Any, result: Json, send: Send, method: str = "") -> None:
        """A result, with what the revision wants in it."""
        if self.modern:
            result = {"resultType": "complete"} | result
            if method in CACHED:
                result |= {"ttlMs": 4321, "cacheScope": "public"}
            result["_meta"] = {META + "serverInfo": {"name": "peer", "version": "1"}} | result.get("_meta", {})
        send({"jsonrpc": "2.0", "id": identifier, "result": result})

    def error(self, identifier: Any, error: Json, send: Send) -> None:
        """An error."""
        send({"jsonrpc": "2.0", "id": identifier, "error": error})

    def text(self, identifier: Any, value: object, send: Send) -> None:
        """A tool result with a value as JSON text."""
        self.answer(identifier, {"content": [{"type": "text", "text": json.dumps(value)}]}, send)

    def notify(self, method: str, params: Json, send: Send) -> None:
        """A notification."""
        send({"jsonrpc": "2.0", "method": method, "params": params})

    def publish(self, method: str, params: Json, wanted: Callable[[Json], object]) -> None:
        """To the listen streams that want it, or to the legacy client."""
        if not self.modern:
            self.notify(method, params, self.general)
        for identifier, filters, send in self.listens:
            if wanted(filters):
                self.notify(method, params | {"_meta": {META + "subscriptionId": identifier}}, send)

    # -- asking
    def can(self, method: str, params: Json, asked: Json) -> bool:
        """Whether the client has declared what the ask needs, for this request or for its session."""
        declared = self.capabilities(asked)
        name = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}[
            method
        ]
        if method == "sampling/createMessage" and "tools" in params:
            return "tools" in declared.get(name, {})
        if params.get("mode") == "url":
            return "url" in declared.get(name, {})
        return name in declared

    def capabilities(self, params: Json) -> Json:
        """What the client has declared."""
        return params.get("_meta", {}).get(META + "clientCapabilities", {}) if self.modern else self.declared

    def ask(self, turns: list[dict[str, Json]], params: Json, identifier: Any, send: Send, finish: Finish) -> None:
        """Ask the client turn by turn, all asks of a turn at once; `finish` gets all answers.

        Legacy: requests on the call's stream. Modern: `input_required`, the answers of before in `requestState`.
        """
        for turn in turns:
            for each in turn.values():
                if not self.can(each["method"], each.get("params", {}), params):
                    failed = [{"type": "text", "text": f"the client has not declared {each['method']}"}]
                    self.answer(identifier, {"content": failed, "isError": True}, send)
                    return
        if self.modern:
            self._ask_by_result(turns, params, identifier, send, finish)
        else:
            self._ask_by_requests(turns, {}, send, finish)

    def _ask_by_requests(self, turns: list[dict[str, Json]], answers: Json, send: Send, finish: Finish) -> None:
        if not turns:
            finish(answers)
            return
        missing = set(turns[0])
        for key, each in turns[0].items():
            self._asks += 1

            def answered(message: Json, key: str = key) -> None:
                answers[key] = message.get("result", {"error": message.get("error")})
                missing.discard(key)
                if not missing:
                    self._ask_by_requests(turns[1:], answers, send, finish)

            self.waiting[f"ask-{self._asks}"] = answered
            send({"jsonrpc": "2.0", "id": f"ask-{self._asks}", **each})

    def _ask_by_result(
        self, turns: list[dict[str, Json]], params: Json, identifier: Any, send: Send, finish: Finish
    ) -> None:
        state: Json = json.loads(params.get("requestState", '{"turn": -1, "answers": {}}'))
        answers = state["answers"] | params.get("inputResponses", {})
        turn = state["turn"] + 1
        if turn == len(turns):
            finish(answers)
            return
        result = {"inputRequests": turns[turn], "requestState": json.dumps({"turn": turn, "answers": answers})}
        self.answer(identifier, {"resultType": "input_required", **result}, send)

    # -- methods
    def on_initialize(self, params: Json, identifier: Any, send: Send) -> None:
        self.declared = params["capabilities"]
        result = {"protocolVersion": self.revision, "capabilities": content.capabilities(self.revision)}
        result |= {"serverInfo": {"name": "peer", "version": "1"}, "instructions": "Ask the peer."}
        self.answer(identifier, result, send)

    def on_server_discover(self, params: Json, identifier: Any, send: Send) -> None:
        result = {"supportedVersions": [MODERN], "capabilities": content.capabilities(self.revision)}
        result |= {"instructions": "Ask the peer.", "ttlMs": 60000, "cacheScope": "public"}
        self.answer(identifier, result, send)

    def on_ping(self, params: Json, identifier: Any, send: Send) -> None:
        self.answer(identifier, {}, send)

    def on_logging_setLevel(self, params: Json, identifier: Any, send: Send) -> None:
        self.level = params["level"]
        self.answer(identifier, {}, send)

    def on_resources_subscribe(self, params: Json, identifier: Any, send: Send) -> None:
        self.subscribed.add(params["uri"])
        self.answer(identifier, {}, send)

    def on_resources_unsubscribe(self, params: Json, identifier: Any, send: Send) -> None:
        self.subscribed.discard(params["uri"])
        self.answer(identifier, {}, send)

    def on_subscriptions_listen(self, params: Json, identifier: Any, send: Send) -> None:
        wanted = params["notifications"]
        self.listens.append((identifier, wanted, send))
        meta = {"_meta": {META + "subscriptionId": identifier}}
        self.notify("notifications/subscriptions/acknowledged", {"notifications": wanted} | meta, send)

    def list(self, method: str, params: Json, identifier: Any, send: Send) -> None:
        """One page; the second has the empty text as its cursor, which is a valid one."""
        member = content.MEMBERS[method]
        cursor = params.get("cursor")
        start = 0 if cursor is None else int(cursor or PAGE)
        result: Json = {member: self.lists[member][start : start + PAGE]}
        if start + PAGE < len(self.lists[member]):
            result["nextCursor"] = "" if start == 0 else str(start + PAGE)
        self.answer(identifier, result, send, method)

    def on_prompts_get(self, params: Json, identifier: Any, send: Send) -> None:
        given = params.get("arguments", {})

        def finish(answers: Json) -> None:
            text = json.dumps(answers) if params["name"] == "asking" else f"Greet {given.get('who')}"
            message = {"role": "user", "content": {"type": "text", "text": text}}
            self.answer(identifier, {"messages": [message]}, send)

        if params["name"] == "asking":
            self.ask(ASKED_ELSEWHERE, params, identifier, send, finish)
        elif params["name"] in ("greeting", "grown"):
            finish({})
        else:
            self.error(identifier, {"code": -32602, "message": "no such prompt"}, send)

    def on_resources_read(self, params: Json, identifier: Any, send: Send) -> None:
        uri = params["uri"]

        def finish(answers: Json) -> None:
            contents: Json = {"uri": uri, "mimeType": "text/plain", "text": json.dumps(answers)}
            if uri == "peer://blob":
                contents = {"uri": uri, "mimeType": "image/png", "blob": content.PNG}
            elif uri.startswith("ui:"):
                contents = {"uri": uri, "mimeType": "text/html;profile=mcp-app", "text": "<p>app</p>"}
            self.answer(identifier, {"contents": [contents]}, send, "resources/read")

        if uri == "peer://asking":
            self.ask(ASKED_ELSEWHERE, params, identifier, send, finish)
        elif "missing" in uri:
            code = -32602 if self.modern else -32002
            self.error(identifier, {"code": code, "message": "Resource not found", "data": {"uri": uri}}, send)
        else:
            finish({"read": uri})

    def on_completion_complete(self, params: Json, identifier: Any, send: Send) -> None:
        if "context" in params and self.revision not in since(R3):
            self.violation("completion/complete carries context")
        before = params.get("context", {}).get("arguments", {}).get("who", "nobody")
        ref = params["ref"].get("name") or params["ref"].get("uri")
        self.answer(identifier, {"completion": {"values": [ref, params["argument"]["value"] + "da", before]}}, send)

    # -- tools
    def on_tools_call(self, params: Json, identifier: Any, send: Send) -> None:
        if params["name"] not in {tool["name"] for tool in self.lists["tools"]}:
            self.error(identifier, {"code": -32602, "message": f"Unknown tool: {params['name']}"}, send)
            return
        given = params.get("arguments", {})
        getattr(self, "tool_" + params["name"])(given, params, identifier, send)

    def tool_echo(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        meta = {key: value for key, value in params.get("_meta", {}).items() if not key.startswith(META)}
        self.text(identifier, {"arguments": given, "_meta": meta, "capabilities": self.capabilities(params)}, send)

    tool_grown = tool_regional = tool_echo

    def tool_journal(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """The messages of a method that have come so far."""
        self.text(identifier, [each for each in self.journal if each.get("method") == given["method"]], send)

    def tool_fail(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.answer(identifier, {"content": [{"type": "text", "text": "it failed"}], "isError": True}, send)

    def tool_refuse(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.error(identifier, given, send)

    def tool_show(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """A prepared result by name."""
        self.answer(identifier, content.shown(given["what"]), send)

    tool_structured = tool_counted = tool_show

    def tool_ask(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.ask(given["turns"], params, identifier, send, lambda answers: self.text(identifier, answers, send))

    def tool_permit(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Needs a visit to a URL first: error -32042 in 2025-11-25 (its retry is granted), later `input_required`."""
        url = f"https://example.com/permit/{given['key']}"
        question = {"mode": "url", "message": "Please permit", "url": url}
        if self.modern:
            turns = [{"permit": {"method": "elicitation/create", "params": question}}]
            self.ask(turns, params, identifier, send, lambda answers: self.text(identifier, answers, send))
        elif given["key"] in self.granted:
            self.text(identifier, {"permit": "granted"}, send)
        else:
            self.granted.add(given["key"])
            data = {"elicitations": [question | {"elicitationId": given["key"]}]}
            self.error(identifier, {"code": -32042, "message": "This needs a permit", "data": data}, send)
            self.notify("notifications/elicitation/complete", {"elicitationId": given["key"]}, self.general)

    def tool_visit(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Ask for a visit to a URL, and once it has been accepted say that it is complete (2025-11-25)."""

        def finish(answers: Json) -> None:
            if not self.modern:
                self.notify("notifications/elicitation/complete", {"elicitationId": given["key"]}, send)
            self.text(identifier, answers, send)

        question = {"mode": "url", "message": "Please visit", "url": "https://example.com/visit"}
        if not self.modern:
            question["elicitationId"] = given["key"]
        self.ask([{"visit": {"method": "elicitation/create", "params": question}}], params, identifier, send, finish)

    def tool_steps(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.progress(params, send, 1, 2, 3)
        self.text(identifier, "done", send)

    def progress(self, params: Json, send: Send, *steps: int) -> None:
        """Report progress where it is wanted."""
        token = params.get("_meta", {}).get("progressToken")
        for step in steps if token is not None else ():
            notice: Json = {"progressToken": token, "progress": step, "total": 3}
            if self.revision in since(R2):
                notice["message"] = f"step {step}"
            self.notify("notifications/progress", notice, send)

    def tool_hold(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Report progress, then wait until cancelled or released."""
        self.held[given["key"]] = (given["key"], identifier, send)
        self.progress(params, send, 1)

    def tool_release(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        if given["key"] not in self.held:
            failed = {"content": [{"type": "text", "text": "not held"}], "isError": True}
            self.answer(identifier, failed, send)
            return
        _, held, way = self.held.pop(given["key"])
        self.text(held, "released", way)
        self.text(identifier, "released it", send)

    def tool_was_cancelled(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Answers once the held call has been cancelled."""
        if given["key"] in self.cancelled:
            self.text(identifier, True, send)
        else:
            watchers = self.watchers.setdefault(given["key"], [])
            watchers.append(lambda: self.text(identifier, True, send))

    def tool_say(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        levels = ("debug", "info", "notice", "warning", "error")
        least = params.get("_meta", {}).get(META + "logLevel") if self.modern else self.level
        for level in ("debug", "warning"):
            if least and levels.index(level) >= levels.index(least):
                data = {"said": given["text"], "n": [1, None]}
                self.notify("notifications/message", {"level": level, "logger": "peer", "data": data}, send)
        self.text(identifier, "said", send)

    def tool_touch(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        uri = given["uri"]
        if self.modern or uri in self.subscribed:
            method = "notifications/resources/updated"
            self.publish(method, {"uri": uri}, lambda filters: uri in filters.get("resourceSubscriptions", []))
        self.text(identifier, uri in self.subscribed, send)

    def tool_grow(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        """Add an entry to a list, or take it away again, and say so."""
        kind = given["kind"]
        entries = self.lists[kind]
        grown = next((entry for entry in entries if entry["name"] == "grown"), None)
        if grown is None:
            entries.append(content.grown(kind))
        else:
            entries.remove(grown)
        self.publish(f"notifications/{kind}/list_changed", {}, lambda filters: filters.get(f"{kind}ListChanged"))
        self.text(identifier, grown is None, send)

    def tool_large(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.answer(identifier, {"content": [{"type": "text", "text": "é\n" * given["count"]}]}, send)

    def tool_job(self, given: Json, params: Json, identifier: Any, send: Send) -> None:
        self.tasks.job(given, params, identifier, send)
