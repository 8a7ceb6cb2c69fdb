"""Resources and prompts as constant tools (`polyplex.asTools`), for clients that know nothing but tools."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Raw

from polyplex.catalog.search.types import Kind
from polyplex.catalog.signatures import decoded, one_line, signature, summary
from polyplex.content.tokens import estimate
from polyplex.downstream.calls import gathered
from polyplex.downstream.session import Call
from polyplex.errors import RpcError, SearchUnavailable
from polyplex.gateway import pipeline
from polyplex.gateway.builtin.contents import of_prompt, of_resource
from polyplex.gateway.builtins import BuiltinTool, Json, ToolFailure, always, builtin_entry, finished, text_result
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.mux import cursors
from polyplex.mux.entries import Entry
from polyplex.protocol.bridge import downgrade
from polyplex.protocol.bridge.results import tool_failure
from polyplex.protocol.jsonrpc import (
    MISSING_CAPABILITY,
    URL_ELICITATION_REQUIRED,
    Fields,
    decode_error,
    decode_fields,
    encode_json,
)
from polyplex.transports.exchange import Reply

FOUND: Final = 20
HEAD_TOKENS: Final = 60
# Errors that a client, not the model, has to act on.
_FOR_CLIENTS: Final = (MISSING_CAPABILITY, URL_ELICITATION_REQUIRED)
_KEPT: Final = ("_meta", "inputResponses", "requestState")
_TEXT: Final[Json] = {"type": "string"}
_LIST: Final[Json] = {
    "type": "object",
    "properties": {
        "query": _TEXT | {"description": "What to look for; without it all are listed."},
        "server": _TEXT | {"description": "Only those of this server."},
        "cursor": _TEXT | {"description": "Where the answer before said that there is more."},
    },
}
_READ: Final[Json] = {
    "type": "object",
    "properties": {"uri": _TEXT | {"description": "The URI as the list gives it, or one that fits a template."}},
    "required": ["uri"],
}
_GET: Final[Json] = {
    "type": "object",
    "properties": {
        "name": _TEXT | {"description": "The name as the list gives it."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Its arguments."},
    },
    "required": ["name"],
}


class Shaped(Reply):
    """A reply that has been made a tool's result already: a retry is answered with the reply of the call it is of."""

    __slots__ = ()


class AsTools:
    """The four tools."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._budget = core.config.options.search.budget_tokens

    def tools(self) -> list[BuiltinTool]:
        """Those that the configuration asks for; none are there, listed or not, without."""
        made: list[BuiltinTool] = []
        if "resources" in self._core.config.options.as_tools:
            made += [
                _tool(
                    "list_resources",
                    "List resources",
                    "List or find what can be read: documents, files, records.",
                    _LIST,
                    self.list_resources,
                ),
                _tool(
                    "read_resource",
                    "Read a resource",
                    "Read a resource by its URI.",
                    _READ,
                    self.read_resource,
                    open_world=True,
                ),
            ]
        if "prompts" in self._core.config.options.as_tools:
            made += [
                _tool(
                    "list_prompts",
                    "List prompts",
                    "List or find prompts that the servers have ready for a task.",
                    _LIST,
                    self.list_prompts,
                ),
                _tool(
                    "get_prompt",
                    "Get a prompt",
                    "Get a prompt's text, its arguments filled in.",
                    _GET,
                    self.get_prompt,
                    open_world=True,
                ),
            ]
        return made

    # -- lists
    async def list_resources(self, call: Call, client: Client, arguments: Json) -> bytes:
        """Resources, then templates, a line for each."""
        return await self._list("list_resources", client, arguments, ("resource", "template"), _resource_line)

    async def list_prompts(self, call: Call, client: Client, arguments: Json) -> bytes:
        """Prompts with their arguments, a line for each."""
        return await self._list("list_prompts", client, arguments, ("prompt",), _prompt_line)

    async def _list(
        self, name: str, client: Client, arguments: Json, kinds: Sequence[Kind], line: Callable[[Entry], str]
    ) -> bytes:
        await self._core.first_lists(client)
        entries = await self._entries(client, arguments, kinds)
        if not entries:
            return text_result("Nothing fits; try other words." if arguments.get("query") else "Nothing is there.")
        start = _start(name, entries, arguments.get("cursor"))
        room = self._budget - HEAD_TOKENS
        lines: list[str] = []
        for entry in entries[start:]:
            text = line(entry)
            room -= estimate(text) + 1
            if room < 0 and lines:
                break
            lines.append(text)
        end = start + len(lines)
        if end < len(entries):
            cursor = cursors.seal(name, entries[end - 1].key, end)
            lines.append(f"{len(entries) - end} more: call again with the cursor {cursor}")
        return text_result("\n".join(lines))

    async def _entries(self, client: Client, arguments: Json, kinds: Sequence[Kind]) -> list[Entry]:
        """All, or those that fit a query."""
        view, server, query = self._core.view(client), arguments.get("server") or None, arguments.get("query")
        servers = {upstream.config.name: 1 for upstream in view.upstreams}
        if server is not None and server not in servers:
            raise ToolFailure(f"There is no server {one_line(server, 80)!r}. The servers are: {', '.join(servers)}.")
        allowed = self._core.allowed(client)
        found: list[Entry] = []
        for kind in kinds:
            if query:
                try:
                    match = await self._core.finder.find(view, query, FOUND, kind=kind, server=server, allowed=allowed)
                except SearchUnavailable as error:
                    raise ToolFailure(str(error)) from None
                found += match.entries if match.confident else []
            else:
                member = {"resource": "resources", "template": "resourceTemplates", "prompt": "prompts"}[kind]
                entries = view.routes.listed(member).entries
                found += [
                    each for each in entries if server in (None, each.server) and (allowed is None or allowed(each))
                ]
        return found

    # -- reading
    async def read_resource(self, call: Call, client: Client, arguments: Json) -> Reply:
        """`resources/read` in the place of the call; what it gives becomes the content of a tool result."""
        return await self._carry(
            call, client, "resources/read", {"uri": Raw(encode_json(arguments["uri"]))}, of_resource
        )

    async def get_prompt(self, call: Call, client: Client, arguments: Json) -> Reply:
        """`prompts/get` in the place of the call; its messages become the content of a tool result."""
        params = {
            "name": Raw(encode_json(arguments["name"])),
            "arguments": Raw(encode_json(arguments.get("arguments", {}))),
        }
        return await self._carry(call, client, "prompts/get", params, of_prompt)

    async def _carry(
        self, call: Call, client: Client, method: str, params: Fields, content: Callable[[Fields], list[Any]]
    ) -> Reply:
        """Send the call along the straight line as another method, so that it can be asked, parked and cancelled."""
        outer = call.fields or {}
        call.fields = {key: outer[key] for key in _KEPT if key in outer} | params
        call.params = encode_json(call.fields)
        call.method, call.headers, call.server, call.streamable = method, None, None, False
        try:
            reply = await pipeline.answer(self._core, call, client)
        finally:
            call.method = "tools/call"
        return reply if isinstance(reply, Shaped) else _shaped(call, await gathered(reply), content)


def _tool(
    name: str,
    title: str,
    description: str,
    schema: Json,
    run: Callable[[Call, Client, Json], Any],
    *,
    open_world: bool = False,
) -> BuiltinTool:
    return BuiltinTool(builtin_entry(name, title, description, schema, open_world=open_world), run, always)


def _shaped(call: Call, reply: Reply, content: Callable[[Fields], list[Any]]) -> Reply:
    """A reply to another method as that to a tool call. What asks the client for input stays as it is."""
    era = call.session.era
    if reply.error is not None:
        error = decode_error(reply.error)
        return reply if error.code in _FOR_CLIENTS else Shaped(result=tool_failure(error.message, era))
    fields = decode_fields(reply.result or b"{}")
    if bytes(fields.get("resultType", Raw(b'"complete"'))) != b'"complete"':
        return reply
    result = finished(encode_json({"content": content(fields)}), era)
    return Shaped(result=downgrade.result_for("tools/call", result, call.session.revision))


def _start(name: str, entries: Sequence[Entry], cursor: str | None) -> int:
    if not cursor:
        return 0
    try:
        after, offset = cursors.unseal(name, cursor)
    except RpcError as error:
        raise ToolFailure(f"The cursor cannot be used: {error.message}.") from None
    where = next((index for index, entry in enumerate(entries, 1) if entry.key == after), offset)
    if where >= len(entries):
        raise ToolFailure("There is nothing more.")
    return where


def _resource_line(entry: Entry) -> str:
    fields = decoded(entry.raw)
    facts = [str(fields["mimeType"])[:60]] if fields.get("mimeType") else []
    if isinstance(fields.get("size"), int):
        facts.append(f"{fields['size']} bytes")
    name = one_line(str(fields.get("title") or fields.get("name") or ""), 100)
    told = summary({"description": fields.get("description")})
    about = f" ({', '.join(facts)})" if facts else ""
    return f"{entry.key} – {name}{about}{f': {told}' if told else ''}"


def _prompt_line(entry: Entry) -> str:
    fields = decoded(entry.raw)
    told = summary(fields)
    return f"{signature(entry.key, fields)}{f' – {told}' if told else ''}"
