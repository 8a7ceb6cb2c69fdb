"""A modern client in the test's own memory: each request stands alone, and keeps all that came for it."""

import json
from typing import Any

from msgspec import Raw

from polyplex.downstream.calls import response_frame, run_call
from polyplex.downstream.session import Call, Session
from polyplex.gateway.app import Gateway
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import LATEST_MODERN, Era
from polyplex.transports.exchange import Reply

Json = dict[str, Any]
META = "io.modelcontextprotocol/"
ALL: Json = {"elicitation": {}, "sampling": {}, "roots": {}}


class Request:
    """One request. `frames` came on its stream; `faults` is what no client would put up with."""

    def __init__(self, gateway: Gateway, session: Session, identifier: Any, params: Json, capabilities: Json) -> None:
        self.params = params
        self.frames: list[Json] = []
        self.responses: list[Json] = []
        self.cancelled = False
        self.faults: list[str] = []
        meta: Json = {META + "protocolVersion": LATEST_MODERN, META + "clientCapabilities": capabilities}
        sent = params | {"_meta": meta | params.get("_meta", {})}
        message = Message(id=Raw(json.dumps(identifier)), method="tools/call", params=Raw(json.dumps(sent)))
        self.call = Call(session, message, self._received)
        run_call(gateway, self.call, self._answered, self._unanswered)

    def _received(self, frame: bytes) -> None:
        if self.over:
            self.faults.append(f"after the end of the request came {frame!r}")
        self.frames.append(json.loads(frame))

    def _answered(self, call: Call, reply: Reply) -> None:
        if self.over:
            self.faults.append(f"a second answer, or one after the cancellation: {reply.result or reply.error!r}")
        self.responses.append(json.loads(response_frame(call, reply)))

    def _unanswered(self, call: Call) -> None:
        if not self.cancelled or self.responses:
            self.faults.append("it was given up although nobody had cancelled it")

    def cancel(self) -> None:
        """Close the stream; after the response that means nothing."""
        if not self.responses:
            self.cancelled = True
        self.call.stop()

    @property
    def over(self) -> bool:
        """Nothing may come any more."""
        return bool(self.responses) or self.cancelled

    @property
    def result(self) -> Json | None:
        """The result, where there is one."""
        return self.responses[0].get("result") if self.responses else None

    @property
    def state(self) -> str | None:
        """The state that a retry brings back."""
        result = self.result
        return None if result is None else result.get("requestState")


class ModernClient:
    """Over HTTP each request has a session of its own; over stdio (`shared`) all have the same."""

    def __init__(self, gateway: Gateway, *, shared: bool) -> None:
        self._gateway = gateway
        self._shared = self._session() if shared else None
        self.requests: list[Request] = []

    def _session(self) -> Session:
        return Session(Era.MODERN, LATEST_MODERN, http=False, identifier="modern")

    def send(self, params: Json, capabilities: Json) -> Request:
        session = self._shared or self._session()
        request = Request(self._gateway, session, len(self.requests), params, capabilities)
        self.requests.append(request)
        return request
