"""The object stores, each started once, and the test runs over all of them and over a folder."""

import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from polyplex.config.model import PayloadOptions
from scripts.peers import PeersError, store_peers
from tests.stores import servers

STARTED = {
    "seaweedfs": servers.seaweed,
    "moto": servers.moto,
    "fake-gcs": servers.fake_gcs,
    "azurite": servers.azurite,
}


@pytest.fixture(scope="session", params=["folder", *STARTED])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[servers.Server]:
    """One store to test."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "folder":
        yield servers.Server("folder", f"file:{folder}", {}, "")
        return
    pytest.importorskip("obstore")
    try:
        store_peers(install=False)
    except PeersError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    with STARTED[request.param](folder) as server:
        yield server


@pytest.fixture
def options(place: servers.Server) -> Callable[..., PayloadOptions]:
    """Options of a store in this place."""
    return lambda **more: PayloadOptions(store=place.address, store_options=place.options, **more)
