from pathlib import Path

import pytest

from tests.interaction.stage import stage


@pytest.mark.parametrize("era", ["legacy", "modern", "dual"])
async def test_a_call_and_its_answer(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        legacy = await on.legacy()
        assert (await legacy.value("a__echo", x=1))["arguments"] == {"x": 1}
        assert (await on.modern().value("a__echo", x=1))["arguments"] == {"x": 1}
