"""The fixture's resources, prompts and completions."""

import json
import re
from collections.abc import Mapping

import mcp_types as types
from fixture_asks import ask_for_prompt
from fixture_rounds import Call
from fixture_tools import PNG, ListState, embedded
from mcp.shared.exceptions import MCPError

TEXT_URI = "test://static-text"
BINARY_URI = "test://static-binary"
WATCHED_URI = "test://watched-resource"
TEMPLATE = "test://template/{id}/data"
LEGACY_RESOURCE_NOT_FOUND = -32002


def resources() -> list[types.Resource]:
    """The direct resources."""
    return [
        types.Resource(uri=TEXT_URI, name="static-text", description="Static text", mime_type="text/plain"),
        types.Resource(uri=BINARY_URI, name="static-binary", description="Static picture", mime_type="image/png"),
        types.Resource(uri=WATCHED_URI, name="watched", description="May be subscribed to", mime_type="text/plain"),
    ]


def templates() -> list[types.ResourceTemplate]:
    """The one resource template."""
    description = "Data for an id"
    return [
        types.ResourceTemplate(
            uri_template=TEMPLATE, name="template", description=description, mime_type="application/json"
        )
    ]


def read(uri: str, *, modern: bool) -> types.ReadResourceResult:
    """The contents of a resource.

    Raises:
        MCPError: no such resource; -32602 in the stateless era (SEP-2164), -32002 before.
    """
    contents = _contents(uri)
    if contents is None:
        code = types.INVALID_PARAMS if modern else LEGACY_RESOURCE_NOT_FOUND
        raise MCPError(code, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[contents])


def _contents(uri: str) -> types.TextResourceContents | types.BlobResourceContents | None:
    if uri == BINARY_URI:
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    texts = {
        TEXT_URI: "This is the content of the static text resource.",
        WATCHED_URI: "This is the content of the watched resource.",
    }
    if uri in texts:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=texts[uri])
    match = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if match is None:
        return None
    text = json.dumps({"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"})
    return types.TextResourceContents(uri=uri, mime_type="application/json", text=text)


def prompts(lists: ListState) -> list[types.Prompt]:
    """The prompts of this moment."""
    table: dict[str, tuple[str, tuple[str, ...]]] = {
        "test_simple_prompt": ("A prompt without arguments", ()),
        "test_prompt_with_arguments": ("A prompt with two arguments", ("arg1", "arg2")),
        "test_prompt_with_embedded_resource": ("A prompt with a resource", ("resourceUri",)),
        "test_prompt_with_image": ("A prompt with a picture", ()),
        "test_input_required_result_prompt": ("A prompt that asks for its context", ()),
    }
    if lists.dynamic_prompt:
        table["test_dynamic_prompt"] = ("Listed only between two calls of test_trigger_prompt_change", ())
    return [
        types.Prompt(
            name=name,
            description=description,
            arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
        )
        for name, (description, arguments) in table.items()
    ]


async def prompt(name: str, call: Call) -> types.GetPromptResult:
    """One prompt, filled in.

    Raises:
        MCPError: no such prompt, or an argument is missing.
    """
    if name == "test_input_required_result_prompt":
        blocks: list[types.ContentBlock] = [types.TextContent(text=await ask_for_prompt(call))]
    else:
        blocks = _prompt_blocks(name, call.arguments)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])


def _prompt_blocks(name: str, arguments: Mapping[str, str]) -> list[types.ContentBlock]:
    try:
        match name:
            case "test_simple_prompt" | "test_dynamic_prompt":
                return [types.TextContent(text="This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                text = f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
                return [types.TextContent(text=text)]
            case "test_prompt_with_embedded_resource":
                resource = embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
                return [resource, types.TextContent(text="Please process the embedded resource above.")]
            case "test_prompt_with_image":
                picture = types.ImageContent(data=PNG, mime_type="image/png")
                return [picture, types.TextContent(text="Please analyze the image above.")]
            case _:
                raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {name}")
    except KeyError as missing:
        raise MCPError(types.INVALID_PARAMS, f"Missing argument: {missing}") from missing


def complete(value: str) -> types.CompleteResult:
    """Completions of a prompt argument: the known words that start with what was typed."""
    words = [word for word in ("testing", "test", "paris", "park", "party") if word.startswith(value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))
