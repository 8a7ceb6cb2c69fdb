"""Real SDKs of five generations as clients and servers, all with all."""

from pathlib import Path

import pytest

from tests.matrix.peer.words import REVISIONS
from tests.matrix.sdk_peers import client_transport, expected, pythons, run_client, sdk_server, server_transports
from tests.matrix.stage import Front, serving

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]
SERVERS = [(revision, transport) for revision in reversed(REVISIONS) for transport in server_transports(revision)]


@pytest.mark.parametrize(("revision", "transport"), SERVERS)
async def test_every_sdk_with_a_server(
    tmp_path: Path, python_sdks: dict[str, Path], revision: str, transport: str
) -> None:
    found = pythons(python_sdks)
    wrong: list[str] = []
    async with (
        sdk_server(tmp_path, revision, transport, found[revision]) as server,
        serving(Front(tmp_path, server)) as made,
    ):
        for client in REVISIONS:
            way = client_transport(client, transport)
            seen = await run_client(made, client, way, found[client])
            wrong += [
                f"{client} over {way}: {name} is {seen.get(name)!r}, not {value!r}"
                for name, value in expected(client, revision).items()
                if seen.get(name) != value
            ]
    assert not wrong, "\n" + "\n".join(wrong)
