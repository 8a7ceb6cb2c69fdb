"""A modern client calls again with the `requestState` it was given, or is given one (2026-07-28, "MRTR").

What polyplex gives is always sealed, a modern server's own state inside: the server knows polyplex, not its callers, so
that only polyplex can see to it that a state serves nobody but the caller it was given to.
"""

from typing import Final

from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.parking import Parking, given_answers, input_required, require
from polyplex.gateway.states import State
from polyplex.protocol.bridge import questions
from polyplex.protocol.bridge.results import tool_failure
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    Fields,
    decode_fields,
    decode_params,
    decode_text,
    encode_json,
)
from polyplex.protocol.revisions import Era
from polyplex.transports.exchange import Reply

MAX_VISITS: Final = 10
MAX_INNER_BYTES: Final = 1024 * 1024
_URL_NEEDED: Final = b'{"requiredCapabilities":{"elicitation":{"url":{}}}}'
_INPUT_REQUIRED: Final = b'"input_required"'


class Returns:
    """Opens and gives states."""

    def __init__(self, parking: Parking, ttl_seconds: float) -> None:
        self._parking = parking
        self._states = parking.states
        self._ttl = ttl_seconds

    async def back(self, call: Call, client: Client, fields: Fields) -> Reply | Fields:
        """The reply to a retry, or the params with which it goes on to its server. Raises `RpcError`."""
        try:
            text = decode_text(fields["requestState"])
        except RemoteProtocolError:
            raise RpcError(INVALID_PARAMS, "params.requestState is not a text") from None
        digest = questions.subject_digest(call.method, fields)
        state = self._states.open(text, client.binding.caller, digest)
        if state.kind == "parked":
            return await self._parking.resume(call, client, fields, state)
        if state.kind == "link":
            reply = self._visited(call, client, fields, state)
            if reply is not None:
                return reply
            call.visits = state.round
            fields = {key: value for key, value in fields.items() if key not in questions.RETRY_MEMBERS}
        else:
            fields = fields | {"requestState": Raw(encode_json(state.inner))}
        call.fields, call.params = fields, encode_json(fields)
        return fields

    def _visited(self, call: Call, client: Client, fields: Fields, state: State) -> Reply | None:
        """None once the user has agreed to visit all pages; else what to answer."""
        answers = given_answers(fields)
        asked = _links(state)
        missing = {key: raw for key, raw in asked.items() if key not in answers}
        if any(questions.refused(answers[key]) for key in asked if key in answers):
            text = "The user did not open the page that the server wants to be visited first, so nothing was done."
            if call.method == "tools/call":
                return Reply(result=tool_failure(text, Era.MODERN))
            raise RpcError(INTERNAL_ERROR, text)
        if missing:
            return self._ask_to_visit(call, client, state.links, state.round)
        return None

    def visit_first(self, call: Call, client: Client, data: bytes | None) -> Reply:
        """A server refuses a call until its user has visited a page (-32042 of 2025-11-25): have the client asked.

        Raises `RpcError` where that cannot be done.
        """
        links = tuple(questions.links_of(data))
        if not links or call.visits >= MAX_VISITS:
            problem = "names no page" if not links else f"still wants a page to be visited after {MAX_VISITS} times"
            raise RpcError(INTERNAL_ERROR, f"the server refuses the request until a page was visited, and {problem}")
        return self._ask_to_visit(call, client, links, call.visits + 1)

    def _ask_to_visit(self, call: Call, client: Client, links: tuple[questions.Link, ...], number: int) -> Reply:
        try:
            require(client.capabilities, "elicitation/create", b'{"mode":"url"}')
        except RpcError as error:
            raise RpcError(MISSING_CAPABILITY, error.message, _URL_NEEDED) from None
        fields = call.fields or decode_params(call.params or b"{}")
        state = self._state("link", call, client, fields, number=number, links=links)
        return Reply(result=input_required(_links(state), self._states.seal(state)))

    def given(self, call: Call, client: Client, result: bytes) -> bytes:
        """A modern server's result for a modern client: a state in it is sealed; any other result stays as it is."""
        try:
            members = decode_fields(result)
        except RemoteProtocolError:
            return result
        inner = members.get("requestState")
        if inner is None or bytes(members.get("resultType", Raw(b""))) != _INPUT_REQUIRED or bytes(inner)[:1] != b'"':
            return result
        if memoryview(inner).nbytes > MAX_INNER_BYTES:  # sealed it would be more than is opened again
            raise RpcError(INTERNAL_ERROR, f"the server's requestState is larger than {MAX_INNER_BYTES} bytes")
        fields = call.fields or decode_params(call.params or b"{}")
        state = self._state("relay", call, client, fields, inner=decode_text(inner))
        return encode_json(members | {"requestState": Raw(encode_json(self._states.seal(state)))})

    def _state(
        self,
        kind: str,
        call: Call,
        client: Client,
        fields: Fields,
        *,
        number: int = 0,
        inner: str = "",
        links: tuple[questions.Link, ...] = (),
    ) -> State:
        return State(
            kind,
            client.binding.caller,
            questions.subject_digest(call.method, fields),
            self._states.expiry(self._ttl),
            round=number,
            inner=inner,
            links=links,
        )


def _links(state: State) -> dict[str, bytes]:
    return {f"link{number}": questions.link_request(link) for number, link in enumerate(state.links, 1)}
