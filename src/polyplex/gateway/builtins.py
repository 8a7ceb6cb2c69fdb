"""The built-in tools: how they are declared, found by a call, checked and run.

A tool is a `BuiltinTool`; whoever builds one adds it with `Builtins.add`. A call of one never reaches a server by
itself: the straight line hands it over before anything else looks at it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import Raw

from polyplex.catalog.arguments import Checker, unknown_names
from polyplex.config.model import RESERVED_SERVER
from polyplex.downstream.session import Call
from polyplex.gateway.client import Client
from polyplex.gateway.profile import Profile
from polyplex.mux.entries import Entry
from polyplex.protocol.bridge import results
from polyplex.protocol.bridge.tasks import not_a_task_tool
from polyplex.protocol.jsonrpc import Fields, decode_fields, decode_text, encode_json
from polyplex.protocol.revisions import LATEST_LEGACY, MODERN, R2025_11_25, Era
from polyplex.transports.exchange import Reply

BUILTIN: Final = RESERVED_SERVER
"""The server name that no configured server may have; public names of built-in tools begin with it."""

Json = dict[str, Any]
Run = Callable[[Call, Client, Json], Awaitable[Reply | bytes]]
Listed = Callable[[Profile, bool], bool]
_NONE: Final = Raw(b"{}")


class ToolFailure(Exception):
    """A built-in tool cannot do what it was asked. The text tells the model what, and what to do instead."""


class BuiltinTool(NamedTuple):
    """A tool of polyplex.

    `run` gets the arguments decoded, with `checked` once they fit the entry's `inputSchema`; the raw params are in
    `call.fields`. It gives the result as `tools/call` has it in the legacy era, or a finished `Reply`; it raises
    `ToolFailure`, or `RpcError` for what is no answer for a model. `listed` tells for a profile, and whether tools are
    searched for, if the tool is to be seen; it can be called all the same. `tasks` is for one whose calls may become
    tasks.
    """

    entry: Entry
    run: Run
    listed: Listed
    checked: bool = True
    tasks: bool = False


class Builtins:
    """All built-in tools by name. `checker` is for whoever checks arguments."""

    def __init__(self) -> None:
        self.checker = Checker()
        self._readers: list[tuple[Callable[[str], bool], BuiltinTool]] = []
        self._by_name: dict[str, BuiltinTool] = {}
        self._by_raw: dict[bytes, BuiltinTool] = {}

    def add(self, tool: BuiltinTool) -> None:
        """Offer a tool. Names are plain ASCII, so that calls find it without parsing them."""
        self._by_name[tool.entry.key] = tool
        self._by_raw[encode_json(tool.entry.key)] = tool

    def add_reader(self, serves: Callable[[str], bool], reader: BuiltinTool) -> None:
        """Have `resources/read` of the URIs that are served answered by a tool; it gives a finished `Reply`."""
        self._readers.append((serves, reader))

    def get(self, name: str) -> BuiltinTool | None:
        """The tool of this public name."""
        return self._by_name.get(name)

    def named(self, method: str, fields: Fields) -> BuiltinTool | None:
        """The built-in tool that a `tools/call` names, or that answers a `resources/read`; None for all others."""
        if method == "resources/read" and self._readers and "uri" in fields:
            uri = decode_text(fields["uri"])
            return next((reader for serves, reader in self._readers if serves(uri)), None)
        raw = fields.get("name")
        if raw is None or method != "tools/call":
            return None
        tool = self._by_raw.get(bytes(raw))
        if tool is None and b"\\" in bytes(raw):  # the same name in other letters: an escape of JSON
            return self._by_name.get(decode_text(raw))
        return tool

    def entries(self, profile: Profile, searching: bool) -> list[Entry]:
        """The entries to list, in the order in which they were added."""
        return [tool.entry for tool in self._by_name.values() if tool.listed(profile, searching)]

    async def answer(self, tool: BuiltinTool, call: Call, client: Client, fields: Fields) -> Reply:
        """Run a tool. Raises `RpcError` where it does."""
        if not tool.tasks and "task" in fields and R2025_11_25 <= call.session.revision <= LATEST_LEGACY:
            raise not_a_task_tool(tool.entry.key)
        call.server = BUILTIN
        call.fields = fields
        try:
            if call.method != "tools/call":
                return cast("Reply", await tool.run(call, client, {}))
            answer = await tool.run(call, client, self._arguments(tool, fields))
        except ToolFailure as failure:
            return Reply(result=results.tool_failure(str(failure), call.session.era))
        return answer if isinstance(answer, Reply) else Reply(result=finished(answer, call.session.era))

    def _arguments(self, tool: BuiltinTool, fields: Fields) -> Json:
        """The arguments of a call, decoded; null members, as models write them for what they leave out, are left out.

        Raises `ToolFailure` where they are none, or do not fit.
        """
        raw = bytes(fields.get("arguments", _NONE))
        try:
            decoded = msgspec.json.decode(bytes(_NONE) if raw == b"null" else raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ToolFailure(f"The arguments of {tool.entry.key} are not valid JSON: {error}") from None
        if not isinstance(decoded, dict):
            raise ToolFailure(f"The arguments of {tool.entry.key} must be an object.")
        arguments = {key: value for key, value in cast("Json", decoded).items() if value is not None}
        if tool.checked:
            schema, given = bytes(decode_fields(tool.entry.raw)["inputSchema"]), encode_json(arguments)
            problems = self.checker.problems(schema, given, strict=True)
            if problems:
                told = "\n".join(f"- {line}" for line in [*problems, *unknown_names(schema, given)])
                raise ToolFailure(f"The arguments of {tool.entry.key} do not fit:\n{told}")
        return arguments


def finished(result: bytes, era: Era) -> bytes:
    """A result of our own in the shape of the client's era."""
    return results.finish("tools/call", decode_fields(result)) if era is MODERN else result


def builtin_entry(
    name: str,
    title: str,
    description: str,
    input_schema: Json,
    *,
    output_schema: Json | None = None,
    read_only: bool = True,
    open_world: bool = False,
) -> Entry:
    """The entry of a built-in tool; `name` is without the prefix."""
    key = f"{BUILTIN}__{name}"
    tool: Json = {"name": key, "title": title, "description": description, "inputSchema": input_schema}
    if output_schema is not None:
        tool["outputSchema"] = output_schema
    tool["annotations"] = {"readOnlyHint": read_only, "openWorldHint": open_world}
    return Entry(BUILTIN, name, key, encode_json(tool))


def always(profile: Profile, searching: bool) -> bool:
    """Lists a tool in any case."""
    return True


def when_searching(profile: Profile, searching: bool) -> bool:
    """Lists a tool where tools are searched for."""
    return searching


def text_result(text: str, structured: object = None) -> bytes:
    """A tool result with one text, and structured content where given."""
    result: Json = {"content": [{"type": "text", "text": text}]}
    if structured is not None:
        result["structuredContent"] = structured
    return encode_json(result)
