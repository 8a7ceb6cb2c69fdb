from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from polyplex.config.model import ServerConfig
from polyplex.protocol.revisions import Era
from polyplex.upstreams import manifest as module
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.lists import Listing
from polyplex.upstreams.manifest import Manifests

SERVER = ServerConfig(name="s", kind="stdio", command="c", args=("a",), env={"TOKEN": "secret"})
PEER = Peer(Era.MODERN, "2026-07-28", {"tools": Raw(b'{"x":1}')}, b'{"name":"n"}', "Read.")
LISTS = {"tools": Listing([b'{"name":"t","x":1.50}'], 5, True), "prompts": Listing([])}


def spoil(folder: Path, content: bytes) -> None:
    for path in folder.iterdir():
        path.write_bytes(content)


async def test_what_was_saved_is_loaded_byte_for_byte(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "manifests"
    await Manifests(folder).save(SERVER, b"{}", LISTS, PEER)
    known = Manifests(folder).load(SERVER, b"{}")
    assert known is not None
    lists, peer = known
    assert lists == LISTS
    assert (peer.era, peer.revision, peer.info, peer.instructions) == (PEER.era, PEER.revision, PEER.info, "Read.")
    assert {name: bytes(raw) for name, raw in peer.capabilities.items()} == {"tools": b'{"x":1}'}
    assert folder.stat().st_mode & 0o077 == 0
    assert [path for path in folder.iterdir() if path.suffix != ".json"] == [], "no half-written file is left"
    assert all(b"secret" not in path.read_bytes() for path in folder.iterdir())


async def test_each_set_of_capabilities_has_its_own_lists_and_a_new_one_starts_with_the_latest(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    for capabilities, name in ((b"{}", b"1"), (b'{"roots":{}}', b"2")):
        await manifests.save(SERVER, capabilities, {"tools": Listing([name])}, PEER)
    found = [manifests.load(SERVER, capabilities) for capabilities in (b"{}", b'{"roots":{}}', b'{"sampling":{}}')]
    assert [known and known[0]["tools"].entries for known in found] == [[b"1"], [b"2"], [b"2"]]


@pytest.mark.parametrize("change", [{"name": "x"}, {"command": "x"}, {"args": ()}, {"cwd": "/x"}, {"kind": "http"}])
async def test_a_changed_server_starts_without_a_memory(tmp_path: Path, change: dict[str, object]) -> None:
    manifests = Manifests(tmp_path)
    await manifests.save(SERVER, b"{}", LISTS, PEER)
    assert manifests.load(msgspec.structs.replace(SERVER, **change), b"{}") is None


DEEP = b'{"server":"s","era":"legacy","revision":"","capabilities":{},"info":%b,"lists":{}}' % (
    b"[" * 99999 + b"]" * 99999
)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"server":1}', b"\xff", b'{"server":"s","era":"later"}', DEEP])
async def test_a_broken_file_is_ignored_and_replaced(tmp_path: Path, content: bytes) -> None:
    manifests = Manifests(tmp_path)
    await manifests.save(SERVER, b"{}", LISTS, PEER)
    spoil(tmp_path, content)
    assert manifests.load(SERVER, b"{}") is None
    await manifests.save(SERVER, b"{}", LISTS, PEER)
    assert manifests.load(SERVER, b"{}") is not None


async def test_a_file_that_is_too_large_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = Manifests(tmp_path)
    await manifests.save(SERVER, b"{}", LISTS, PEER)
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    assert manifests.load(SERVER, b"{}") is None


async def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    manifests = Manifests(tmp_path / "file" / "folder")
    await manifests.save(SERVER, b"{}", LISTS, PEER)
    assert "cannot be remembered" in caplog.text
