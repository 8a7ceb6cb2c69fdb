"""Real clients through polyplex to thirteen real servers, over every transport that both sides speak.

Each test is one client on one transport. What it asks is in checks.py; every row is a subtest of its own.
"""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.interop import checks
from tests.interop.clients import node_clients, python_clients
from tests.interop.clients.interface import (
    ELICITED_NAME,
    ROOT_URI,
    SAMPLED_TEXT,
    BasicClient,
    Era,
    FullClient,
    Json,
    Target,
    TransportName,
)
from tests.interop.stage import Stage, running_stage

pytestmark = [
    pytest.mark.peers,
    pytest.mark.timeout(180),
    # The SDKs' own deprecations and unclosed streams are theirs.
    pytest.mark.filterwarnings("ignore"),
]
LIST_SECONDS = 30
INSPECTORS = 2
_numbers = itertools.count(100)

Answer = TypeVar("Answer")
Connect = Callable[[Target, Era, Path, Mapping[str, Path]], AbstractAsyncContextManager[FullClient]]


@pytest.fixture(scope="session")
def stage(
    python_peers: dict[str, Path], node_peers: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Generator[Stage]:
    """All servers, and polyplex serving them over HTTP."""
    with running_stage(tmp_path_factory.mktemp("stage"), python_peers, node_peers) as stage:
        yield stage


@asynccontextmanager
async def python_sdk(target: Target, era: Era, errors: Path, _: Mapping[str, Path]) -> AsyncGenerator[FullClient]:
    async with python_clients.python_sdk(target, era, errors) as client:
        yield client


@asynccontextmanager
async def fastmcp(target: Target, _: Era, errors: Path, __: Mapping[str, Path]) -> AsyncGenerator[FullClient]:
    async with python_clients.fastmcp_client(target, errors) as client:
        yield client


CLIENTS: tuple[tuple[str, Connect, Era, tuple[TransportName, ...]], ...] = (
    ("python-sdk", python_sdk, "modern", ("http", "stdio")),
    ("python-sdk", python_sdk, "legacy", ("http", "sse", "stdio")),
    ("fastmcp", fastmcp, "modern", ("http", "stdio")),
    ("fastmcp", fastmcp, "legacy", ("sse",)),
    ("typescript-sdk", node_clients.typescript, "modern", ("http", "stdio")),
    ("typescript-sdk", node_clients.typescript, "legacy", ("http", "sse", "stdio")),
)
ROWS = [
    pytest.param(connect, era, transport, id=f"{name}-{era}-{transport}")
    for name, connect, era, transports in CLIENTS
    for transport in transports
]


@pytest.mark.parametrize(("connect", "era", "transport"), ROWS)
async def test_a_client_gets_everything_from_every_server(
    stage: Stage,
    node_peers: dict[str, Path],
    tmp_path: Path,
    subtests: pytest.Subtests,
    request: pytest.FixtureRequest,
    connect: Connect,
    era: Era,
    transport: TransportName,
) -> None:
    target = stage.target(transport)
    async with connect(target, era, tmp_path / "client.log", node_peers) as client:
        assert client.era == era
        if era == "legacy":  # servers that are slow to start join late; a list change tells
            await until_listed(client, {question.name for question in checks.QUESTIONS})
        await check_lists(client, subtests)
        await check_basics(client, stage, f"{request.node.callspec.id}-{os.getpid()}", subtests)
        checked = [check_completion, check_contents, check_progress, check_cancellation, check_logging]
        checked += [check_updates, check_questions]
        for check in checked:
            with subtests.test(check.__name__):
                await check(client)
        if target.roots and era == "legacy":
            with subtests.test("roots"):
                assert ROOT_URI in checks.text_of(await client.call("everything__get-roots-list", {}))


@pytest.mark.parametrize(
    ("era", "transport"), [("legacy", "http"), ("legacy", "sse"), ("legacy", "stdio"), ("modern", "http")]
)
async def test_the_inspector_gets_an_answer_from_every_server(
    stage: Stage,
    node_peers: dict[str, Path],
    tmp_path: Path,
    subtests: pytest.Subtests,
    era: Era,
    transport: TransportName,
) -> None:
    """One request a process, so only one tool of each server, and some of the rest; a few processes at once."""
    target = stage.target(transport, lazy=True)
    client = node_clients.InspectorClient(target, era, tmp_path / "client.log", node_peers)
    key = f"inspector-{era}-{transport}-{os.getpid()}"
    at_once = asyncio.Semaphore(INSPECTORS)

    async def limited(answer: Awaitable[Answer]) -> Answer:
        async with at_once:
            return await answer

    await check_lists(client, subtests)
    async with asyncio.TaskGroup() as tasks:
        questions = {question.server: question for question in reversed(checks.QUESTIONS)}.values()
        calls = [
            (question, tasks.create_task(limited(client.call(question.name, question.arguments(stage, key)))))
            for question in questions
        ]
        reads = [(row, tasks.create_task(limited(client.read(row[0])))) for row in checks.RESOURCES[::8]]
        prompts = [(row, tasks.create_task(limited(client.prompt(*row[:2])))) for row in checks.PROMPTS[4:5]]
    for question, call in calls:
        with subtests.test("tool", name=question.name):
            assert question.holds(stage, key) in checks.text_of(await call)
    for (uri, text), read in reads:
        with subtests.test("resource", uri=uri):
            assert text in checks.text_of(await read)
    for (name, _, text), prompt in prompts:
        with subtests.test("prompt", name=name):
            assert text in checks.text_of(await prompt)


async def check_lists(client: BasicClient, subtests: pytest.Subtests) -> None:
    """Every server that has entries of a kind is in the list, once each."""
    for kind, expected in checks.OFFERING.items():
        with subtests.test("list", kind=kind):
            entries = await client.listed(kind)
            assert {checks.owner(kind, entry) for entry in entries} >= expected
            names = [entry["uri" if kind == "resources" else "name"] for entry in entries]
            if kind != "resourceTemplates":
                assert len(names) == len(set(names))


async def check_basics(client: BasicClient, stage: Stage, key: str, subtests: pytest.Subtests) -> None:
    """The tables of tools, resources and prompts."""
    for question in checks.QUESTIONS:
        with subtests.test("tool", name=question.name):
            result = await client.call(question.name, question.arguments(stage, key))
            assert question.holds(stage, key) in checks.text_of(result)
            assert not result.get("isError")
    for uri, text in checks.RESOURCES:
        with subtests.test("resource", uri=uri):
            contents = await client.read(uri)
            assert text in checks.text_of(contents)
            assert [content["uri"] for content in contents["contents"]] == [uri]
    for name, arguments, text in checks.PROMPTS:
        with subtests.test("prompt", name=name):
            assert text in checks.text_of(await client.prompt(name, arguments))


async def check_completion(client: FullClient) -> None:
    for ref, name, value, expected in checks.COMPLETIONS:
        assert await client.complete(ref, name, value) == expected, ref


async def check_contents(client: FullClient) -> None:
    """Structured content, an image, annotations, and links that lead back through polyplex."""
    weather = await client.call("everything__get-structured-content", {"location": "Chicago"})
    assert weather["structuredContent"]["conditions"]
    image = await client.call("everything-http__get-tiny-image", {})
    assert "image/png" in [block.get("mimeType") for block in image["content"]]
    noted = await client.call("everything__get-annotated-message", {"messageType": "error"})
    assert noted["content"][0]["annotations"] == {"priority": 1.0, "audience": ["user", "assistant"]}
    links = await client.call("everything-sse__get-resource-links", {"count": 2})
    for link in [block for block in links["content"] if block["type"] == "resource_link"]:
        assert (await client.read(link["uri"]))["contents"][0]["uri"] == link["uri"]
    embedded = await client.call("everything__get-resource-reference", {"resourceType": "Text", "resourceId": 3})
    uris = [block["resource"]["uri"] for block in embedded["content"] if block["type"] == "resource"]
    assert uris == ["everything+demo://resource/dynamic/text/3"]


async def check_progress(client: FullClient) -> None:
    for server in checks.EVERYTHING:
        seen = await client.progress(f"{server}__trigger-long-running-operation", {"duration": 0.2, "steps": 4})
        steps = [(step["progress"], step["total"]) for step in seen]
        expected = [(1, 4), (2, 4), (3, 4), (4, 4)]
        if client.loses_last_progress:
            expected = expected[: max(3, len(steps))]
        assert steps == expected, server


async def check_cancellation(client: FullClient) -> None:
    key = f"{os.getpid()}-{id(client)}"
    await client.cancel("python-sdk__hold", {"key": key})
    assert "true" in checks.text_of(await client.call("python-sdk__was_cancelled", {"key": key})).lower()


async def check_logging(client: FullClient) -> None:
    """Messages of the level asked for, and none below it."""
    await client.level("warning")
    before = len(client.notices.seen)
    for level in ("debug", "warning"):
        await client.call("python-sdk__say", {"level": level, "text": f"{level} of {id(client)}"})
    await client.notices.wait("notifications/message", lambda params: params["data"] == f"warning of {id(client)}")
    said = [params["data"] for method, params in client.notices.seen[before:] if method == "notifications/message"]
    assert (f"debug of {id(client)}" not in said) is client.filters_logs


async def check_updates(client: FullClient) -> None:
    """Subscriptions: of a legacy client to a legacy server, of a modern one to a modern server."""
    if client.era == "modern":
        await client.watch("python-sdk+note://today")
        await client.call("python-sdk__touch", {})
        update = await client.notices.wait("notifications/resources/updated")
        assert update["uri"] == "python-sdk+note://today"
        return
    await client.level("info")
    # A URI of its own: one that an earlier client still subscribes to is not subscribed to twice.
    number = next(_numbers)
    for server in checks.EVERYTHING:
        uri = f"{server}+demo://resource/dynamic/text/{number}"
        before = len(client.notices.seen)
        await client.watch(uri)
        await client.notices.wait("notifications/message", lambda params: "Subscribe" in params["data"], before)
        await toggled(client, server, "Started")
        await client.notices.wait("notifications/resources/updated", _of(uri), before)
        await toggled(client, server, "Stopped")


def _of(uri: str) -> Callable[[Json], bool]:
    return lambda params: params["uri"] == uri


async def toggled(client: FullClient, server: str, wanted: str) -> None:
    """Turn the simulated updates of a server on or off, whatever they were before."""
    said = ""
    for _ in range(2):
        said = checks.text_of(await client.call(f"{server}__toggle-subscriber-updates", {}))
        if said.startswith(wanted):
            return
    raise AssertionError(f"{server} is not {wanted.lower()}: {said}")


async def check_questions(client: FullClient) -> None:
    """Sampling and elicitation: of a legacy server to a legacy client, of a modern one to a modern client."""
    if client.era == "legacy":
        wanted = {f"{server}__trigger-{what}-request" for server in checks.EVERYTHING for what in _QUESTIONS}
        await until_listed(client, wanted)
        for server in checks.EVERYTHING:
            sampled = await client.call(f"{server}__trigger-sampling-request", {"prompt": "Where?", "maxTokens": 9})
            assert SAMPLED_TEXT in checks.text_of(sampled), server
            elicited = await client.call(f"{server}__trigger-elicitation-request", {})
            assert f"Name: {ELICITED_NAME}" in checks.text_of(elicited), server
    asked = await client.call("python-sdk__ask_user", {})
    assert checks.text_of(asked) == f"Hello, {ELICITED_NAME}!"
    asked = await client.call("python-sdk__ask_model", {})
    assert checks.text_of(asked) == f"It said: {SAMPLED_TEXT}"


_QUESTIONS = ("sampling", "elicitation")


async def until_listed(client: FullClient, names: set[str]) -> None:
    """Wait for tools that servers offer only to clients of certain capabilities; each list change looks anew."""
    async with asyncio.timeout(LIST_SECONDS):
        while True:
            seen = len(client.notices.seen)
            missing = names - {tool["name"] for tool in await client.listed("tools")}
            if not missing:
                return
            await client.notices.wait("notifications/tools/list_changed", since=seen)


async def test_a_question_reaches_the_client_whose_call_caused_it(stage: Stage, tmp_path: Path) -> None:
    """Clients of both eras and all transports at once, on the same sessions with the servers behind them."""
    kinds: tuple[tuple[Era, TransportName], ...] = (("legacy", "http"), ("legacy", "sse"), ("modern", "http"))
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                python_clients.python_sdk(stage.target(transport), era, tmp_path / "client.log", f"client {number}")
            )
            for number, (era, transport) in enumerate(kinds * 2)
        ]
        for client in clients:
            if client.era == "legacy":
                await until_listed(client, {f"{name}__trigger-sampling-request" for name in checks.EVERYTHING})
        async with asyncio.TaskGroup() as tasks:
            calls = {
                (number, name, turn): tasks.create_task(client.call(name, arguments))
                for number, client in enumerate(clients)
                for name, arguments in SAMPLERS[client.era]
                for turn in range(3)
            }
    for (number, name, _), call in calls.items():
        answer = checks.text_of(call.result())
        # Over stdio and HTTP+SSE a server does not say which call a question belongs to: then nobody is asked.
        refused = name in UNATTRIBUTED and "cannot be attributed" in answer
        assert refused or f"client {number}" in answer, (number, name, answer)


UNATTRIBUTED = ("everything__trigger-sampling-request", "everything-sse__trigger-sampling-request")
SAMPLERS: dict[Era, tuple[tuple[str, Json], ...]] = {
    "legacy": (
        *((f"{name}__trigger-sampling-request", {"prompt": "Who?", "maxTokens": 9}) for name in checks.EVERYTHING),
        ("python-sdk__ask_model", {}),
    ),
    "modern": (("python-sdk__ask_model", {}),),
}


def test_the_command_line_lists_and_calls_the_example_as_it_is(stage: Stage) -> None:
    example = json.loads(stage.example_config.read_text(encoding="utf-8"))["mcpServers"]
    assert len(example) == 8
    assert {server.get("type", "stdio") for server in example.values()} == {"stdio", "http", "sse"}
    listed = stage.polyplex("tools", "--config", str(stage.example_config), "--json")
    assert listed.returncode == 0, listed.stderr
    assert {checks.owner("tools", tool) for tool in json.loads(listed.stdout)} == set(example)
    called = stage.polyplex(
        *("call", "everything-sse__echo", '{"message": "from the shell"}', "--config", str(stage.example_config))
    )
    assert called.returncode == 0, called.stderr
    assert "Echo: from the shell" in called.stdout
