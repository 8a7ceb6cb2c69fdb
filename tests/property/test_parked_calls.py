"""Parked calls under random interleavings of all that can happen to them (PROTOCOL: H1).

Whatever the order: it always ends, nothing runs twice, each request gets one answer, each question of the server is
answered or taken back once, and no answer reaches another call's question.
"""

import asyncio
from collections import Counter
from typing import Any, Final
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplex.upstreams import upstream as upstream_module
from tests.property.chain import memory_gateway
from tests.property.clockwork import quiet, rounds, run
from tests.property.memory_server import Ask, MemoryServer
from tests.property.modern_client import ALL, ModernClient, Request

Json = dict[str, Any]
TTL_SECONDS: Final = 50.0
LONG_SECONDS: Final = 2000.0
METHODS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
CAPABILITIES: Final = (ALL, ALL, {"elicitation": {"form": {}}}, {})
STEP = st.one_of(
    st.tuples(st.just("call"), st.booleans(), st.sampled_from(CAPABILITIES), st.sampled_from([None, None, "one"])),
    st.tuples(st.just("ask"), st.integers(0, 3), st.sampled_from(METHODS)),
    st.tuples(st.just("ask"), st.integers(0, 3), st.sampled_from(METHODS)),
    st.tuples(st.just("take back"), st.integers(0, 5)),
    st.tuples(st.just("finish"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("progress"), st.integers(0, 3)),
    st.tuples(
        st.just("retry"),
        st.integers(0, 5),
        st.sampled_from(["all", "all", "none", "first", "others"]),
        st.sampled_from(["as it was", "as it was", "as it was", "arguments", "state"]),
        st.sampled_from(CAPABILITIES),
    ),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("die"), st.integers(0, 3)),
    st.tuples(st.just("rounds"), st.integers(1, 3)),
    st.tuples(st.just("quiet")),
    st.tuples(st.just("quiet")),
    st.tuples(st.just("time"), st.sampled_from([0.005, 0.011, 0.02, TTL_SECONDS, TTL_SECONDS + 3, 1000.0])),
    st.tuples(st.just("time"), st.just(0.02)),
)

OPENING: Final = (("call", True, ALL, None), ("quiet",), ("ask", 0, METHODS[0]))


def pick(items: list[Any], number: int) -> Any:
    """One of the items, counted from the newest; None where there are none."""
    return items[-1 - number % len(items)] if items else None


class World:
    """A gateway, a server behind it, a client in front."""

    def __init__(self, *, attributes: bool, shared: bool) -> None:
        entry = {"url": "http://server.invalid/"} if attributes else {"command": "server"}
        self.gateway = memory_gateway({"a": entry}, ttlSeconds=TTL_SECONDS)
        self.server = MemoryServer(attributes=attributes)
        self.client = ModernClient(self.gateway, shared=shared)
        self._marks = 0

    async def step(self, name: str, *details: Any) -> None:
        getattr(self, "do_" + name.replace(" ", "_"))(*details)
        if name == "rounds":
            await rounds(details[0])
        elif name == "quiet":
            await quiet()
        elif name == "time":
            await self.pass_time(details[0])

    def do_rounds(self, number: int) -> None:
        """Done by `step`."""

    def do_quiet(self) -> None:
        """Done by `step`."""

    def do_time(self, seconds: float) -> None:
        """Done by `step`."""

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await quiet()

    def do_call(self, reports: bool, capabilities: Json, handle: str | None) -> None:
        self._marks += 1
        meta = ({"progressToken": f"call-{self._marks}"} if reports else {}) | (
            {} if handle is None else {"polyplex/session": handle}
        )
        params: Json = {"name": "t", "arguments": {"mark": self._marks}, "_meta": meta}
        self.client.send(params, capabilities)

    def do_ask(self, number: int, method: str) -> None:
        execution = pick(self.server.live(), number)
        if execution is not None:
            self.server.ask(execution, method)

    def do_take_back(self, number: int) -> None:
        ask = pick(self.server.open_asks(), number)
        if ask is not None:
            self.server.take_back(ask)

    def do_finish(self, number: int, failing: bool) -> None:
        execution = pick(self.server.live(), number)
        if execution is not None:
            self.server.finish(execution, failing=failing)

    def do_progress(self, number: int) -> None:
        execution = pick(self.server.live(), number)
        if execution is not None:
            self.server.progress(execution)

    def do_die(self, number: int) -> None:
        wire = pick([wire for wire in self.server.wires if wire.open_], number)
        if wire is not None:
            wire.die()

    def do_cancel(self, number: int) -> None:
        request = pick(self.client.requests, number)
        if request is not None:
            request.cancel()

    def do_retry(self, number: int, which: str, change: str, capabilities: Json) -> None:
        before = pick([request for request in self.client.requests if request.state], number)
        if before is None:
            return
        asked = list(before.result["inputRequests"].items())
        chosen = {"all": asked, "none": [], "first": asked[:1], "others": asked[1:]}[which]
        arguments = before.params["arguments"]
        state: Any = before.state
        if change == "arguments":
            arguments = arguments | {"more": 1}
        elif change == "state":
            state = state[:-3] + "AAA"
        self.client.send(
            {
                "name": "t",
                "arguments": arguments,
                "requestState": state,
                "inputResponses": {key: answer_to(question) for key, question in chosen},
                "_meta": {"progressToken": len(self.client.requests)},
            },
            capabilities,
        )

    async def wind_down(self, stopping: bool) -> None:
        """Time for everything to end by itself; or polyplex stops in the middle."""
        if not stopping:
            await self.pass_time(LONG_SECONDS)
            parking = self.gateway.core.parking
            assert not parking.waiting and not parking._parked and not parking.outcomes
            assert all(execution.ended for execution in self.server.executions), "the server was not told"
            assert all(request.over for request in self.client.requests), "a request is still open"
            for upstream in self.gateway.core.pool.all():
                if upstream.connection is not None:
                    assert not upstream.connection.in_flight and not upstream.connection._asks
            self.check_asks(self.server.asks)
        for request in self.client.requests:
            if stopping and not request.over:
                request.call.stop("polyplex is stopping")
        await self.gateway.stop()
        await quiet()

    def check(self) -> None:
        runs = Counter(execution.mark for execution in self.server.executions)
        assert not [mark for mark, count in runs.items() if count > 1], "it ran twice"
        for request in self.client.requests:
            assert not request.faults
            assert request.over and len(request.responses) == (0 if request.cancelled else 1)
            self.check_final(request)
            token = request.params.get("_meta", {}).get("progressToken")
            assert all(frame["params"]["progressToken"] == token for frame in request.frames)
        for execution in self.server.executions:
            assert execution.cancels <= 1, "it was cancelled twice"
        self.check_answers()

    def check_final(self, request: Request) -> None:
        """A final result is that of the request's own run."""
        result = request.result
        if result is None or result["resultType"] != "complete" or result.get("isError"):
            return
        mark = request.params["arguments"]["mark"]
        assert result["content"] == [{"type": "text", "text": f"done {mark}"}]

    def check_asks(self, asks: list[Ask]) -> None:
        for ask in asks:
            if ask.execution.wire.open_ and not ask.taken_back:
                assert len(ask.answers) == 1, f"{ask.id} has {len(ask.answers)} answers"

    def check_answers(self) -> None:
        """An answer is to the very question, or says that there is none."""
        for ask in self.server.asks:
            assert len(ask.answers) <= 1
            assert not (ask.answers and ask.taken_back_in_quiet), "a question that was taken back was answered"
            for answer in ask.answers:
                result = answer.get("result")
                if result is not None and result != {"action": "cancel"}:
                    assert tag_in(ask.method, result) in (ask.tag, None)


def answer_to(question: Json) -> Json:
    """An answer that shows which question it is for."""
    params = question.get("params", {})
    if question["method"] == "elicitation/create":
        return {"action": "accept", "content": {"tag": params["message"]}}
    if question["method"] == "roots/list":
        return {"roots": []}
    text = params["messages"][0]["content"]
    return {"role": "assistant", "model": "m", "content": text}


def tag_in(method: str, result: Json) -> str | None:
    if method == "elicitation/create":
        return result["content"]["tag"]
    return None if method == "roots/list" else result["content"]["text"]


@pytest.mark.parametrize("attributes", [True, False], ids=["http", "stdio"])
@settings(max_examples=settings().max_examples * 2)
@given(st.lists(STEP, max_size=25).map(lambda steps: [*OPENING, *steps]), st.booleans(), st.booleans())
def test_parked_calls_always_end_and_nothing_runs_or_is_answered_twice(
    attributes: bool, steps: list[Any], shared: bool, stopping: bool
) -> None:
    async def main() -> None:
        world = World(attributes=attributes, shared=shared)
        with mock.patch.object(upstream_module, "connect", world.server.connect):
            world.gateway.start()
            await quiet()
            for name, *details in steps:
                await world.step(name, *details)
            await world.wind_down(stopping)
        world.check()

    run(main)
