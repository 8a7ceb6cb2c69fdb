"""H4: a legacy server that keeps state (a browser, a cursor), and modern clients, whose requests stand alone."""

from pathlib import Path
from typing import Any

import pytest

from polyplex.gateway import modern
from tests.interaction.stage import Client, stage, value


async def pid(client: Client, handle: Any = None) -> Any:
    """The process that a call reaches, which is the state of a stdio server."""
    meta = {} if handle is None else {"_meta": {"polyplex/session": handle}}
    return value(await client.request("tools/call", {"name": "a__pid", "arguments": {}} | meta))


async def test_the_state_stays_with_the_caller(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        one, again = on.modern(), on.modern()
        assert await pid(one) == await pid(again) == await pid(one)


async def test_a_handle_gives_a_conversation_a_state_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern()
        one, two, none = await pid(client, "one"), await pid(client, "two"), await pid(client)
        assert len({one, two, none}) == 3
        assert (await pid(client, "one"), await pid(client, "two"), await pid(client)) == (one, two, none)


async def test_what_a_handle_does_stays_in_order_and_its_questions_come_back_to_it(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern({"roots": {}})
        meta = {"_meta": {"polyplex/session": "h"}}
        ask = {"name": "a__ask", "arguments": {"method": "roots/list"}} | meta
        questions = await client.request("tools/call", ask)
        answers = {key: {"roots": []} for key in questions["inputRequests"]}
        again = ask | {"requestState": questions["requestState"], "inputResponses": answers}
        assert value(await client.request("tools/call", again)) == {"result": {"roots": []}}
        assert await pid(client, "h") == await pid(client, "h")


async def test_a_handle_that_nobody_uses_ends_with_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern()
        one = await pid(client, "one")
        monkeypatch.setattr(modern, "HANDLE_IDLE_SECONDS", -1.0)
        on.gateway.core.modern._end_idle()
        monkeypatch.undo()
        assert await pid(client, "one") != one


async def test_handles_are_bounded_and_the_oldest_idle_one_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modern, "MAX_HANDLES", 2)
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern()
        pids = [await pid(client, handle) for handle in ("one", "two", "three", "two")]
        assert pids[1] == pids[3] and len(set(pids)) == 3
        assert await pid(client, "one") not in pids


async def test_a_modern_server_has_no_sessions_to_keep_apart(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = on.modern()
        assert await pid(client, "one") == await pid(client, "two") == await pid(client)
