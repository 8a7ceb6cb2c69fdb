"""`polyplex__find_tools`: the tools that fit a query, as compact signatures or with whole schemas, within a budget."""

import inspect
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from polyplex.catalog.signatures import compact, one_line
from polyplex.content.tokens import estimate
from polyplex.downstream.session import Call
from polyplex.errors import SearchUnavailable
from polyplex.gateway.builtins import BuiltinTool, Json, ToolFailure, builtin_entry, text_result, when_searching
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.finding import Match
from polyplex.gateway.instructions import server_list
from polyplex.mux.entries import Entry

DEFAULT_K: Final = 8
MAX_K: Final = 50
NEAREST: Final = 3
RESERVE_TOKENS: Final = 80
_SHOWN_MEMBERS: Final = ("name", "title", "description", "inputSchema")
_DESCRIPTION: Final = (
    "Find the tools for a task among all that the connected servers offer. Say what the tool should do in a few words "
    '("create a calendar event"), one search for each step of a task. The answer gives names and parameters; call a '
    "tool with polyplex__call_tool."
)
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What the tool should do, or its name."},
        "k": {"type": "integer", "minimum": 1, "maximum": MAX_K, "description": f"How many, {DEFAULT_K} by default."},
        "server": {"type": "string", "description": "Only tools of this server."},
        "detail": {
            "type": "string",
            "enum": ["compact", "full"],
            "description": "full gives whole descriptions and schemas, as far as there is room.",
        },
    },
    "required": ["query"],
}


class FindTools:
    """Runs the searches of all clients."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._budget = core.config.options.search.budget_tokens

    def tool(self) -> BuiltinTool:
        """The tool, listed where tools are searched for."""
        entry = builtin_entry("find_tools", "Find tools", _DESCRIPTION, _SCHEMA)
        return BuiltinTool(entry, self.run, when_searching)

    async def run(self, call: Call, client: Client, arguments: Json) -> bytes:
        """Search, and answer within the budget."""
        query, k = one_line(arguments["query"], 200), int(arguments.get("k", DEFAULT_K))
        server, full = arguments.get("server") or None, arguments.get("detail") == "full"
        await self._core.first_lists(client)
        view = self._core.view(client)
        counts = view.tool_counts()
        if server is not None and server not in counts:
            raise ToolFailure(f"There is no server {one_line(server, 80)!r}. The servers are: {server_list(counts)}.")
        total = len(view.routes.tools.entries) if server is None else counts[server]
        if total == 0:
            raise ToolFailure("No server offers tools now; those that are still starting may later.")
        try:
            match = await self._core.finder.find(
                view, arguments["query"], k, server=server, allowed=self._core.allowed(client)
            )
        except SearchUnavailable as error:
            raise ToolFailure(str(error)) from None
        if not match.confident or not match.entries:
            return self._nothing(query, match, server_list(counts))
        found = f"of {server}'s {total} tools" if server is not None else f"of {total} tools"
        if full:
            return self._full(match.entries, f"{len(match.entries)} {found} for {query!r}, best first")
        return self._compact(match.entries, f"{len(match.entries)} {found} for {query!r}, best first")

    def _nothing(self, query: str, match: Match, servers: str) -> bytes:
        """Nothing fits: say so, and what may help."""
        lines = [f"No tool fits {query!r}."]
        if match.entries:
            lines += ["The nearest, which may do something else:", *map(compact, match.entries[:NEAREST])]
        lines.append(f"Try other words, or one of the servers: {servers}.")
        return text_result("\n".join(lines), {"tools": []})

    def _compact(self, entries: Sequence[Entry], head: str) -> bytes:
        """A signature for each. Half of the budget is for the structured form, which tells the same to programs."""
        room = self._budget // 2 - RESERVE_TOKENS
        lines: list[str] = []
        for entry in entries:
            line = compact(entry)
            room -= estimate(line) + 4
            if room < 0 and lines:
                break
            lines.append(line)
        left = (
            f"\n{len(entries) - len(lines)} more fit but have no room here: ask for fewer words or one server."
            if len(lines) < len(entries)
            else ""
        )
        text = f"{head}; call one with polyplex__call_tool(name, arguments):\n" + "\n".join(lines) + left
        tools = [
            {"name": entry.key, "tool": line.removeprefix(entry.key)}
            for entry, line in zip(entries, lines, strict=False)
        ]
        return text_result(text, {"tools": tools})

    def _full(self, entries: Sequence[Entry], head: str) -> bytes:
        """Whole tools as far as there is room, and the signatures of the others."""
        room = self._budget - RESERVE_TOKENS
        whole: list[str] = []
        short: list[str] = []
        for entry in entries:
            text = _whole(entry)
            cost = estimate(text) + 4
            if cost <= room:
                room -= cost
                whole.append(text)
            else:
                line = compact(entry)
                room -= estimate(line) + 4
                if room >= 0 or not (whole or short):
                    short.append(line)
        lines = [f"{head}; call one with polyplex__call_tool(name, arguments):", *whole]
        if short:
            lines += [
                "There was no room for the whole schemas of these; search for one by its name with k = 1:",
                *short,
            ]
        missing = len(entries) - len(whole) - len(short)
        if missing:
            lines.append(f"{missing} more fit but have no room here.")
        return text_result("\n".join(lines))


def _whole(entry: Entry) -> str:
    """What a model needs of a tool, as JSON."""
    fields: dict[str, Any] = msgspec.json.decode(entry.raw)
    shown = {key: fields[key] for key in _SHOWN_MEMBERS if key in fields}
    if isinstance(shown.get("description"), str):
        shown["description"] = inspect.cleandoc(shown["description"])
    shown["inputSchema"] = {key: value for key, value in shown["inputSchema"].items() if key != "$schema"}
    return msgspec.json.encode(shown).decode()
