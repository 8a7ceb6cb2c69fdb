"""The HTTP client and TLS: whom it trusts, and what it says of whom it does not."""

import ssl
from pathlib import Path

import pytest
import trustme

from tests.process.conftest import LoopFactory
from tests.process.http_stage import Peer, raw_server
from tests.process.http_taking import ask, echo, pool_to


@pytest.fixture(scope="module", name="authority")
def certificate_authority() -> trustme.CA:
    return trustme.CA()


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def test_tls_with_a_private_authority(loop_factory: LoopFactory, authority: trustme.CA, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    tls = server_context(authority.issue_cert("127.0.0.1"))
    async with (
        raw_server(echo, tls) as server,
        pool_to(server, ssl.create_default_context(cafile=str(ca_file))) as pool,
    ):
        assert [await ask(pool).outcome() for _ in range(3)] == [b"0"] * 3


async def test_an_unknown_authority_is_named_and_so_is_the_way_out(
    loop_factory: LoopFactory, authority: trustme.CA
) -> None:
    tls = server_context(authority.issue_cert("127.0.0.1"))
    async with raw_server(echo, tls) as server, pool_to(server, ssl.create_default_context()) as pool:
        taker = ask(pool)
        said = str(await taker.outcome())
        assert f"the certificate of 127.0.0.1:{server.port} is not trusted" in said
        assert "set caFile" in said
        assert taker.failure is not None
        assert not taker.failure.sent


async def test_a_certificate_for_another_name_is_refused(
    loop_factory: LoopFactory, authority: trustme.CA, tmp_path: Path
) -> None:
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    tls = server_context(authority.issue_cert("other.example"))
    async with (
        raw_server(echo, tls) as server,
        pool_to(server, ssl.create_default_context(cafile=str(ca_file))) as pool,
    ):
        assert "is not trusted" in str(await ask(pool).outcome())


async def test_tls_with_a_server_that_has_none(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read(64)
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with raw_server(script) as server, pool_to(server, ssl.create_default_context()) as pool:
        assert f"TLS with 127.0.0.1:{server.port} failed" in str(await ask(pool).outcome())


async def test_a_server_that_never_answers_the_handshake_is_given_up(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.gone()

    async with raw_server(script) as server, pool_to(server, ssl.create_default_context(), seconds=0.1) as pool:
        assert await ask(pool).outcome() == f"no connection to 127.0.0.1:{server.port} in time"
