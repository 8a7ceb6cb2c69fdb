"""H1b: a parked call lives in one process. Another one that is given its state says so, and never runs it again."""

from pathlib import Path

import pytest

from tests.interaction.parked import ABLE, asking, first_round, refusal, retry
from tests.interaction.stage import Json, Stage, stage, value

KEYS = ["the secret of today!", "the secret of yesterday!"]


@pytest.mark.parametrize("known", [True, False], ids=["one key ring", "another key ring"])
async def test_a_state_of_another_replica(tmp_path: Path, known: bool) -> None:
    params = asking("elicitation/create")
    entry: Json = {"era": "legacy"}
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    others = KEYS[::-1] if known else ["a secret of others"]
    async with stage(first, {"a": entry}, parked={"keys": KEYS}) as here:
        questions = await first_round(here.modern(ABLE), params)
        there = Stage(second, {"a": entry}, {"parked": {"keys": others}})
        there.gateway.start()
        await there.up("a")
        error = await refusal(there.modern(ABLE), retry(params, questions))
        await there.gateway.stop()
        assert error.code == (-32603 if known else -32602)
        assert ("another replica" in error.message) is known
        assert there.received("a", "tools/call") == []
        final = await here.modern(ABLE).request("tools/call", retry(params, questions))
        assert value(final)["runs"] == 1, "and the call itself goes on where it waits"
