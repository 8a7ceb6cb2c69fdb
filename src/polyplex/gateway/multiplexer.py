"""The library: all servers of a configuration behind plain methods, through the same straight line as the endpoints."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

import msgspec
from msgspec import Raw

from polyplex.catalog.search.types import Kind
from polyplex.config import Config, load_config, load_config_dict
from polyplex.downstream.session import Call, Session
from polyplex.errors import ExportError, RpcError
from polyplex.gateway.app import Gateway
from polyplex.gateway.builtin.read_payload import READ_PAYLOAD
from polyplex.gateway.client import Client
from polyplex.gateway.exposure import listed_tokens
from polyplex.gateway.finding import MEMBER_OF
from polyplex.gateway.profile import Profile
from polyplex.gateway.results.limits import META_RESULTS
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Message, encode_json
from polyplex.protocol.revisions import LATEST_LEGACY, Era

if TYPE_CHECKING:
    from polyplex.catalog.export import Export, Provider

Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Progress = Callable[[float, float | None, str | None], None]
SETTLE_SECONDS: Final = 60.0


class Multiplexer:
    """Every server of a configuration, as one.

    `answers` maps `sampling/createMessage`, `elicitation/create` and `roots/list` to async functions from params to
    result; servers are told of exactly these abilities. Use it as an async context manager.
    """

    def __init__(self, config: Config, *, answers: Mapping[str, Answer] | None = None) -> None:
        self._config = config
        self._answers = dict(answers or {})
        self._ids = itertools.count(1)
        self._progress: dict[bytes, Progress] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._gateway: Gateway
        self._session: Session
        self._client: Client

    @classmethod
    def from_config(
        cls,
        config: "str | Path | Mapping[str, Any] | Config | None" = None,
        *,
        answers: Mapping[str, Answer] | None = None,
    ) -> Self:
        """From a file, a mapping, or (None) from where `polyplex serve` looks. Raises `ConfigError`."""
        if isinstance(config, Config):
            return cls(config, answers=answers)
        if isinstance(config, Mapping):
            return cls(load_config_dict(dict(config)), answers=answers)
        return cls(load_config(config), answers=answers)

    async def __aenter__(self) -> Self:
        self._gateway = Gateway(self._config)
        self._session = Session(Era.LEGACY, LATEST_LEGACY, http=False)
        self._session.attach(self._received)
        self._session.client_info = self._gateway.core.info
        capabilities: dict[str, object] = {
            capability: {} for method, capability in _CAPABILITY_OF.items() if method in self._answers
        }
        self._session.capabilities = encode_json(capabilities)
        self._client = self._gateway.welcome(self._session)
        # A library has all tools at hand, and finds those that a turn needs with `find_tools`.
        self._client.profile = Profile("all", self._gateway.core.profiles.default.results, builtins=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._session.close()
        self._gateway.closed(self._session)
        await self._gateway.stop()

    @property
    def gateway(self) -> Gateway:
        """The gateway underneath."""
        return self._gateway

    async def settled(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until every server has been tried once, for at most `seconds`."""
        await self._gateway.settled(seconds)

    # -- methods
    async def list_tools(self) -> list[dict[str, Any]]:
        """All tools of all servers, as in `tools/list`, with their public names."""
        return await self._all("tools/list", "tools")

    async def list_resources(self) -> list[dict[str, Any]]:
        """All resources, with their public URIs."""
        return await self._all("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """All resource templates."""
        return await self._all("resources/templates/list", "resourceTemplates")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """All prompts, with their public names."""
        return await self._all("prompts/list", "prompts")

    async def find_tools(
        self, query: str, k: int = 8, token_budget: int | None = None, *, server: str | None = None
    ) -> list[dict[str, Any]]:
        """The tools that fit a query, as in `list_tools`, best first; none where nothing fits.

        With `token_budget`, those that do not fit into what is left of it are left out. Raises `SearchUnavailable`.
        """
        return await self._found("tool", query, k, token_budget, server)

    async def find_resources(self, query: str, k: int = 8, *, server: str | None = None) -> list[dict[str, Any]]:
        """As `find_tools`, for resources."""
        return await self._found("resource", query, k, None, server)

    async def find_prompts(self, query: str, k: int = 8, *, server: str | None = None) -> list[dict[str, Any]]:
        """As `find_tools`, for prompts."""
        return await self._found("prompt", query, k, None, server)

    def export_tools(
        self,
        provider: "Provider",
        tools: Iterable[Mapping[str, Any]] | None = None,
        *,
        form: str = "",
        strict: bool = False,
    ) -> "Export":
        """Tools in the form of a model provider: "openai", "anthropic" or "gemini"; without `tools`, all known by now.

        `form` is "chat" or "responses" for OpenAI, "json_schema" or "openapi" for Gemini. `Export.tools` goes into the
        provider's request, `Export.aside` names the tools that cannot be given to it, with the reason. Where results
        are bounded `polyplex__read_payload` is added, which those that were cut tell the model to call.
        """
        from polyplex.catalog.export import export

        given = self._known_tools() if tools is None else list(tools)
        return export(provider, [*given, *self._reader(given)], form=form, strict=strict)

    async def call_exported(self, exported: "Export", call: Any, *, progress: Progress | None = None) -> dict[str, Any]:
        """Carry out a model's call of an exported tool; the message that answers it, in the provider's form.

        `call` is the provider's tool-call object, as JSON or of its SDK. What goes wrong becomes an answer that tells
        the model; raises `ExportError` only where the call has no readable form.
        """
        try:
            name, arguments = exported.call_of(call)
            result = await self.call_tool(name, arguments, progress=progress)
        except (ExportError, RpcError) as error:
            result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
        return exported.result_for(call, result)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
        raw: bool = False,
    ) -> dict[str, Any]:
        """Call a tool; the result is that of `tools/call`, with `isError` where the tool failed. Raises `RpcError`.

        It is bounded as the configuration says; with `raw` it is what the server gave, however large.
        """
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments or {})} | _meta(raw)
        return await self.request("tools/call", params, progress=progress)

    async def read_resource(self, uri: str, *, raw: bool = False) -> dict[str, Any]:
        """Read a resource by its public URI, or by its server's own where only one has it. Raises `RpcError`.

        A stored result is read by its `polyplex://payload/...`, whole with `raw`.
        """
        return await self.request("resources/read", {"uri": uri} | _meta(raw))

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Get a prompt. Raises `RpcError`."""
        return await self.request("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    async def complete(self, ref: Mapping[str, Any], argument: Mapping[str, Any]) -> dict[str, Any]:
        """Complete an argument of a prompt or template. Raises `RpcError`."""
        return await self.request("completion/complete", {"ref": dict(ref), "argument": dict(argument)})

    async def request(
        self, method: str, params: Mapping[str, Any], *, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Any request of the protocol. Raises `RpcError` where it is answered with an error."""
        identifier = b"%d" % next(self._ids)
        members = dict(params)
        if progress is not None:
            meta = cast("dict[str, Any]", members.get("_meta", {}))
            members["_meta"] = {**meta, "progressToken": int(identifier)}
            self._progress[identifier] = progress
        message = Message(id=Raw(identifier), method=method, params=Raw(encode_json(members)))
        call = Call(self._session, message, self._received)
        self._session.calls[call.id] = call
        try:
            reply = await self._gateway.handle(call)
        finally:
            self._session.calls.pop(call.id, None)
            self._progress.pop(identifier, None)
        if reply.result is not None:
            return msgspec.json.decode(reply.result)
        error = jsonrpc.decode_error(reply.error or b"{}")
        raise RpcError(
            error.code, error.message, None if isinstance(error.data, msgspec.UnsetType) else bytes(error.data)
        )

    async def _all(self, method: str, member: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = await self.request(method, params)
            entries += result[member]
            if "nextCursor" not in result:
                return entries
            params = {"cursor": result["nextCursor"]}

    async def _found(
        self, kind: Kind, query: str, k: int, token_budget: int | None, server: str | None
    ) -> list[dict[str, Any]]:
        core = self._gateway.core
        await core.first_lists(self._client)
        view = core.view(self._client)
        allowed = core.allowed(self._client)
        match = await core.finder.find(view, query, k, kind=kind, server=server, allowed=allowed, seconds=None)
        left = token_budget
        found: list[dict[str, Any]] = []
        for entry in match.entries if match.confident else ():
            raw = view.form(MEMBER_OF[kind], entry, Era.LEGACY, tasks=True)
            cost = 0 if left is None else listed_tokens(entry)
            if left is None or cost <= left:
                left = None if left is None else left - cost
                found.append(msgspec.json.decode(raw))
        return found

    def _known_tools(self) -> list[dict[str, Any]]:
        view = self._gateway.core.view(self._client)
        entries = view.entries("tools", self._client.profile)
        return [msgspec.json.decode(view.form("tools", entry, Era.LEGACY, tasks=True)) for entry in entries]

    def _reader(self, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The tool that reads on where results are bounded, unless it is among these tools."""
        tool = self._gateway.core.builtins.get(READ_PAYLOAD)
        if tool is None or not tool.listed(self._client.profile, False):
            return []
        return [] if any(each.get("name") == READ_PAYLOAD for each in tools) else [msgspec.json.decode(tool.entry.raw)]

    # -- what servers send
    def _received(self, frame: bytes) -> None:
        message = jsonrpc.decode(frame)
        if isinstance(message.method, msgspec.UnsetType):
            return
        if isinstance(message.id, msgspec.UnsetType):
            if message.method == "notifications/progress":
                self._on_progress(message)
            return
        task = asyncio.get_running_loop().create_task(self._answer(bytes(message.id), message.method, message.params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_progress(self, message: Message) -> None:
        params: dict[str, Any] = msgspec.json.decode(cast("Raw", message.params))
        progress = self._progress.get(encode_json(params.get("progressToken")))
        if progress is not None:
            progress(params.get("progress", 0), params.get("total"), params.get("message"))

    async def _answer(self, identifier: bytes, method: str, params: object) -> None:
        answer = self._answers.get(method)
        try:
            if answer is None:
                raise RpcError(METHOD_NOT_FOUND, f"{method} has no answer function")
            raw = b"{}" if isinstance(params, msgspec.UnsetType) else bytes(cast("Raw", params))
            members: dict[str, Any] = msgspec.json.decode(raw)
            message = Message(id=Raw(identifier), result=Raw(encode_json(await answer(members))))
        except RpcError as error:
            failure = jsonrpc.error_object(error.code, error.message, error.data)
            message = Message(id=Raw(identifier), error=Raw(failure))
        except Exception as error:  # noqa: BLE001 - whatever the function raises, the server is answered
            message = Message(id=Raw(identifier), error=Raw(jsonrpc.error_object(INTERNAL_ERROR, str(error))))
        self._session.answered(message)


def _meta(raw: bool) -> dict[str, Any]:
    return {"_meta": {META_RESULTS: "raw"}} if raw else {}


_CAPABILITY_OF: Final = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
