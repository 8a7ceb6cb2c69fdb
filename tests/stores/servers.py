"""Object stores that run for the tests: SeaweedFS and moto speak S3, fake-gcs-server GCS, Azurite Azure's protocol."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from obstore.exceptions import BaseError
from obstore.store import S3Store

from scripts.peers import store_peers
from tests.stores.gcs_front import in_front_of

START_SECONDS = 60.0
BUCKET = "payloads"
ACCOUNT = "devstoreaccount1"


@dataclass(frozen=True)
class Server:
    """A running object store: the address of a bucket in it, and the options that reach it."""

    name: str
    address: str
    options: dict[str, str]
    endpoint: str


@contextmanager
def seaweed(folder: Path) -> Generator[Server]:
    """SeaweedFS, with one identity that it checks signatures of."""
    key, secret = secrets.token_hex(10), secrets.token_hex(20)
    identity = {
        "name": "test",
        "credentials": [{"accessKey": key, "secretKey": secret}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    ports = free_ports(8)
    names = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
    flags = [f"-{name}={port}" for name, port in zip(names, ports, strict=False)]
    command = [store_peers(install=False)["weed"], "server", f"-dir={folder}", "-ip=127.0.0.1", *flags]
    command += ["-s3", f"-s3.port={ports[6]}", f"-s3.port.grpc={ports[7]}", f"-s3.config={config}"]
    command += [
        "-master.volumeSizeLimitMB=64",
        "-volume.max=40",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    endpoint = f"http://127.0.0.1:{ports[6]}"
    options = {"endpoint": endpoint, "access_key_id": key, "secret_access_key": secret, "region": "us-east-1"}
    with _running(command, folder):
        _until(lambda: _request("GET", f"{endpoint}/") in (200, 403), "SeaweedFS")
        _until(lambda: _has_room(BUCKET, options), "SeaweedFS")
        yield Server("seaweedfs", f"s3://{BUCKET}/below/here", options, endpoint)


@contextmanager
def moto(folder: Path) -> Generator[Server]:
    """moto, which has all of S3 in memory and checks no signatures."""
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    options = {"endpoint": endpoint, "access_key_id": "any", "secret_access_key": "anything", "region": "us-east-1"}
    with _running([store_peers(install=False)["moto_server"], "-H", "127.0.0.1", "-p", str(port)], folder):
        _until(lambda: _request("PUT", f"{endpoint}/{BUCKET}") == 200, "moto")
        yield Server("moto", f"s3://{BUCKET}", options, endpoint)


@contextmanager
def fake_gcs(folder: Path) -> Generator[Server]:
    """fake-gcs-server, with `gcs_front` before it, and a service account of our own making."""
    port, behind = free_ports(2)
    endpoint = f"http://127.0.0.1:{port}"
    (folder / "objects" / BUCKET).mkdir(parents=True)
    private = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "private_key": private.decode(),
        "private_key_id": "1",
        "client_email": "test@example.com",
        "gcs_base_url": endpoint,
    }
    program = store_peers(install=False)["fake-gcs-server"]
    flags = [
        "-filesystem-root",
        str(folder / "objects"),
        "-external-url",
        endpoint,
        "-public-host",
        f"127.0.0.1:{port}",
    ]
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(behind), *flags]
    with _running(command, folder), in_front_of(behind, port):
        _until(lambda: _request("GET", f"{endpoint}/storage/v1/b/{BUCKET}") == 200, "fake-gcs-server")
        options = {"service_account_key": json.dumps(account), "base_url": endpoint, "bearer_token": "any"}
        yield Server("fake-gcs", f"gs://{BUCKET}/below", options, endpoint)


@contextmanager
def azurite(folder: Path) -> Generator[Server]:
    """Azurite with an account of our own."""
    (port,) = free_ports(1)
    key = base64.b64encode(secrets.token_bytes(64)).decode()
    peers = store_peers(install=False)
    flags = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    command = [
        peers["azurite-node"],
        peers["azurite"],
        *flags,
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    with _running(command, folder, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}"}):
        _until(lambda: _make_container(endpoint, key) in (201, 409), "Azurite")
        options = {"endpoint": endpoint, "account_name": ACCOUNT, "account_key": key}
        yield Server("azurite", f"az://{BUCKET}/below", options, endpoint)


def fetch(url: str) -> tuple[bytes, str]:
    """What anyone gets at an address: the body and its type."""
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read(), response.headers.get("Content-Type", "")


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()


@contextmanager
def _running(
    command: Sequence[object], folder: Path, variables: dict[str, str] | None = None
) -> Generator[subprocess.Popen[bytes]]:
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=os.environ | (variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _until(ready: Callable[[], bool], name: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} did not start within {START_SECONDS:.0f} s; its log is in its folder")
        time.sleep(0.05)


def _request(method: str, url: str, headers: dict[str, str] | None = None) -> int:
    """The status of a request without a body; 0 where nobody answers."""
    request = urllib.request.Request(url, method=method, headers=headers or {})
    if method != "GET":
        request.data = b""
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def _has_room(bucket: str, options: dict[str, str]) -> bool:
    """Whether an object can be written; SeaweedFS makes the bucket with the first one."""
    store = S3Store(bucket, config=options, client_options={"allow_http": True}, retry_config={"max_retries": 0})  # pyright: ignore[reportArgumentType, reportCallIssue]
    try:
        store.put("first", b"x")
    except (BaseError, OSError):
        return False
    return True


def _make_container(endpoint: str, key: str) -> int:
    """Create the container, by a request signed with the account's key."""
    date = formatdate(usegmt=True)
    version = "2021-08-06"
    named = f"x-ms-date:{date}\nx-ms-version:{version}\n"
    resource = f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    text = "PUT\n\n\n\n\napplication/x-www-form-urlencoded\n\n\n\n\n\n\n" + named + resource
    signature = base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return _request("PUT", f"{endpoint}/{BUCKET}?restype=container", headers)
