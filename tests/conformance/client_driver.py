"""The client side of the suite's client scenarios, directly or through polyplex.

The suite starts it with the scenario's name in MCP_CONFORMANCE_SCENARIO, the revision in
MCP_CONFORMANCE_PROTOCOL_VERSION, and the URL of its own mock server as the last argument:

    python tests/conformance/client_driver.py [--through] URL

With --through, polyplex is started with that URL as its only server, and the client talks to polyplex.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from launch import polyplex
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SAMPLES: dict[str, Any] = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}


async def accept_form(_: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Accept with the defaults of the form, and true for any other boolean."""
    content: dict[str, Any] = {}
    if isinstance(params, types.ElicitRequestFormParams):
        for name, schema in params.requested_schema.get("properties", {}).items():
            if "default" in schema:
                content[name] = schema["default"]
            elif schema.get("type") == "boolean":
                content[name] = True
    return types.ElicitResult(action="accept", content=content)


async def sample(_: ClientRequestContext, __: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    """A model that says one word."""
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Yes."), model="fixed")


async def list_roots(_: ClientRequestContext) -> types.ListRootsResult:
    """One root."""
    return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///project", "name": "project"})])


async def only_list(client: Client) -> None:
    await client.list_tools()


async def add_numbers(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def reconnect(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection", {})


async def fill_form(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults", {})


async def metadata(client: Client) -> None:
    """The mock lists no tools and answers any call."""
    await client.list_tools()
    await attempt(client.call_tool("add_numbers", {"a": 5, "b": 3}))


async def several_rounds(client: Client) -> None:
    await client.list_tools()
    for tool in ("test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state"):
        await client.call_tool(tool, {})
    # Directly, the SDK's client 2.3.0 does not take a result without resultType, though it must stand for "complete".
    await attempt(client.call_tool("test_mrtr_no_result_type", {}))


async def every_kind(client: Client) -> None:
    """Each listed tool, resource and prompt once: every header that a request can need."""
    await every_tool(client)
    for resource in (await client.list_resources()).resources:
        await attempt(client.read_resource(str(resource.uri)))
    for prompt in (await client.list_prompts()).prompts:
        await attempt(client.get_prompt(prompt.name))


async def every_tool(client: Client) -> None:
    """Each listed tool once, with the arguments that its schema requires."""
    for tool in (await client.list_tools()).tools:
        properties = tool.input_schema.get("properties", {})
        required = tool.input_schema.get("required", [])
        arguments = {name: SAMPLES.get(properties.get(name, {}).get("type"), "x") for name in required}
        await attempt(client.call_tool(tool.name, arguments))


async def given_calls(client: Client) -> None:
    """The calls that the scenario itself gives, of the tools that are listed."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    for call in json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls", []):
        if call["name"] in listed:
            await attempt(client.call_tool(call["name"], call["arguments"]))


async def echo_schema(client: Client) -> None:
    """The listed schema, sent back as it came."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


async def attempt(request: Awaitable[Any]) -> None:
    """Await a request whose answer does not matter, only what was sent."""
    try:
        await request
    except (MCPError, ValueError, RuntimeError) as error:
        print(f"answered with {error!r}")


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": only_list,
    "tools_call": add_numbers,
    "sse-retry": reconnect,
    "elicitation-sep1034-client-defaults": fill_form,
    "request-metadata": metadata,
    "sep-2322-client-request-state": several_rounds,
    "http-standard-headers": every_kind,
    "http-custom-headers": given_calls,
    "http-invalid-tool-headers": every_tool,
    "json-schema-ref-no-deref": only_list,
    "json-schema-2020-12-preservation": echo_schema,
}


async def drive(scenario: str, revision: str, url: str) -> None:
    """Run one scenario as a client that declares every capability."""
    mode = "auto" if revision in MODERN_PROTOCOL_VERSIONS else "legacy"
    callbacks: dict[str, Any] = {
        "sampling_callback": sample,
        "list_roots_callback": list_roots,
        "elicitation_callback": accept_form,
    }
    if scenario == "initialize":
        callbacks = {}
    async with Client(url, mode=mode, **callbacks) as client:
        await SCENARIOS[scenario](client)


async def run(url: str, *, through: bool) -> None:
    """Run the scenario of the environment against `url`, or against a polyplex before it."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    revision = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    if not through:
        await drive(scenario, revision, url)
        return
    with tempfile.TemporaryDirectory() as folder:
        async with polyplex({"suite": {"url": url}}, Path(folder)) as gateway:
            await drive(scenario, revision, gateway)
        print((Path(folder) / "polyplex.log").read_text(errors="replace"))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--through", action="store_true")
    parser.add_argument("url")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.url, through=arguments.through))


if __name__ == "__main__":
    main()
