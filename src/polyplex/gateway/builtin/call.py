"""`polyplex__call_tool`: calls a tool that is not listed, exactly as if it had been called by itself."""

from typing import Final

from msgspec import Raw

from polyplex.catalog.arguments import Checker, unknown_names
from polyplex.catalog.signatures import compact, decoded, one_line, signature
from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, RpcError, SearchUnavailable
from polyplex.gateway import pipeline
from polyplex.gateway.builtins import BuiltinTool, Json, ToolFailure, builtin_entry, when_searching
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.mux.entries import Entry
from polyplex.protocol.jsonrpc import Fields, decode_fields, decode_params, decode_text, encode_json
from polyplex.protocol.revisions import MODERN
from polyplex.transports.exchange import Reply

NAME: Final = "polyplex__call_tool"
NEAREST: Final = 3
MAX_SAME_NAME: Final = 5
_NULL: Final = b"null"
_DESCRIPTION: Final = (
    "Call a tool that polyplex__find_tools found, by its exact name, with the arguments that its signature names."
)
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The name as polyplex__find_tools gives it."},
        "arguments": {"type": "object", "description": "The tool's own arguments.", "additionalProperties": True},
    },
    "required": ["name"],
}


class CallTool:
    """Unwraps the calls of all clients."""

    def __init__(self, core: Core, checker: Checker) -> None:
        self._core = core
        self._checker = checker

    def tool(self) -> BuiltinTool:
        """The tool, listed where tools are searched for."""
        entry = builtin_entry("call_tool", "Call a tool", _DESCRIPTION, _SCHEMA, read_only=False, open_world=True)
        return BuiltinTool(entry, self.run, when_searching, checked=False, tasks=True)

    async def run(self, call: Call, client: Client, arguments: Json) -> Reply:
        """Put the inner call in the place of the outer one, and let it go its way.

        Retries are sealed for the inner call, too: it is unwrapped before a `requestState` is looked at. Such a retry
        is not checked again, since its call went through the check before, and may be under way.
        """
        outer = call.fields or {}
        inner = _members(bytes(outer.get("arguments", Raw(b"{}"))))
        name = _name(inner)
        raw = _arguments(inner.get("arguments"), name)
        if self._core.builtins.get(name) is None and not (client.binding.era is MODERN and "requestState" in outer):
            entry = await self._entry(client, name)
            self._check(entry, raw)
        call.fields = outer | {"name": Raw(encode_json(name)), "arguments": Raw(raw)}
        call.params = encode_json(call.fields)
        call.headers = None  # they mirror the outer call, and were compared with it
        call.server = None
        return await pipeline.answer(self._core, call, client)

    async def _entry(self, client: Client, name: str) -> Entry:
        """The tool of a name. Raises `ToolFailure` naming the nearest ones."""
        try:
            return self._core.view(client).routes.tools.find("tool", name)
        except RpcError:
            await self._core.pool.server_of(name, client.binding)
        view = self._core.view(client)
        try:
            return view.routes.tools.find("tool", name)
        except RpcError as error:
            if name in view.routes.tools.collisions:
                raise ToolFailure(f"Nothing was called: {error.message}.") from None
        allowed = self._core.allowed(client)
        same = [entry for entry in view.routes.tools.entries if name in (entry.local, entry.renamed)]
        same = [entry for entry in same if allowed is None or allowed(entry)][:MAX_SAME_NAME]
        if not same:
            try:
                same = (await self._core.finder.find(view, name, NEAREST, allowed=allowed)).entries
            except SearchUnavailable:
                same = []
        near = "\n".join(["Did you mean one of these?", *map(compact, same)]) if same else "No name is like it."
        raise ToolFailure(
            f"There is no tool {one_line(name, 100)!r}; nothing was called. {near}\n"
            "polyplex__find_tools(query) finds tools by what they do."
        )

    def _check(self, entry: Entry, raw: bytes) -> None:
        """Raise `ToolFailure` where arguments do not fit, with all that mending them takes."""
        schema = bytes(decode_fields(entry.raw).get("inputSchema", b"{}"))
        problems = self._checker.problems(schema, raw)
        if not problems:
            return
        problems += [line for line in unknown_names(schema, raw) if line not in problems][:NEAREST]
        lines = [f"{entry.key} was not called, since its arguments do not fit:", *(f"- {line}" for line in problems)]
        lines.append(f"It takes {signature(entry.key, decoded(entry.raw))}")
        raise ToolFailure("\n".join(lines))


def _members(raw: bytes) -> Fields:
    """The members of the outer arguments. Raises `ToolFailure`."""
    try:
        inner = {} if raw == _NULL else decode_params(raw)
    except RemoteProtocolError as error:
        raise ToolFailure(f"The arguments of {NAME} cannot be read: {error}") from None
    others = [name for name in inner if name not in ("name", "arguments")]
    if others:
        named = ", ".join(one_line(name, 60) for name in others[:8])
        raise ToolFailure(f'Nothing was called: {NAME} takes "name" and "arguments"; put {named} into "arguments".')
    return inner


def _name(inner: Fields) -> str:
    try:
        name = decode_text(inner.get("name", Raw(_NULL)))
    except RemoteProtocolError:
        raise ToolFailure(f'Nothing was called: {NAME} needs the "name" of a tool, as a text.') from None
    if name == NAME:
        raise ToolFailure(f"Nothing was called: {NAME} cannot call itself; name the tool you want.")
    return name


def _arguments(raw: Raw | None, name: str) -> bytes:
    """The inner arguments as an object. Models now and then write the object as a text. Raises `ToolFailure`."""
    text = b"{}" if raw is None or bytes(raw) == _NULL else bytes(raw)
    if text[:1] == b'"':
        text = decode_text(Raw(text)).strip().encode("utf-8", "surrogatepass") or b"{}"
    try:
        decode_fields(text)
    except RemoteProtocolError as error:
        raise ToolFailure(f'{one_line(name, 100)} was not called: its "arguments" must be an object: {error}') from None
    return text
