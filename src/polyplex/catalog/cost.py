"""What lists cost: tokens of each tool, of instructions, of resources and prompts, by any count of tokens."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from polyplex.catalog.lint.facts import decoded, text
from polyplex.mux.entries import Entry
from polyplex.protocol.jsonrpc import Fields, encode_json

CountTokens = Callable[[str], int]


class ToolCost(Struct, frozen=True, rename="camel"):
    """One tool as a model gets it: `tokens` for name, description and input schema, two of which are told apart."""

    name: str
    local: str
    tokens: int
    description_tokens: int
    schema_tokens: int


class ServerCost(Struct, frozen=True, rename="camel"):
    """One server: its tools, dearest first, and what else of it may reach a model."""

    name: str
    tokens: int
    tools: list[ToolCost]
    instructions_tokens: int
    resources: int
    resources_tokens: int
    prompts: int
    prompts_tokens: int


def cost_of_server(name: str, lists: dict[str, list[Entry]], instructions: str, count: CountTokens) -> ServerCost:
    """What one server costs; `tokens` is the sum of its tools."""
    tools = sorted(
        (cost_of_tool(entry, count) for entry in lists.get("tools", ())), key=lambda each: (-each.tokens, each.name)
    )
    resources = [*lists.get("resources", ()), *lists.get("resourceTemplates", ())]
    prompts = lists.get("prompts", [])
    return ServerCost(
        name,
        sum(each.tokens for each in tools),
        tools,
        count(instructions) if instructions else 0,
        len(resources),
        sum(cost_of_entry(entry, count) for entry in resources),
        len(prompts),
        sum(cost_of_entry(entry, count) for entry in prompts),
    )


def cost_of_tool(entry: Entry, count: CountTokens) -> ToolCost:
    """What a tool costs in every request that offers it."""
    fields = decoded(entry.raw)
    description = text(fields.get("description"))
    schema = encode_json(fields.get("inputSchema", {})).decode()
    shown = {"name": entry.key, "description": description, "input_schema": msgspec.Raw(schema.encode())}
    return ToolCost(entry.key, entry.local, count(encode_json(shown).decode()), count(description), count(schema))


def cost_of_entry(entry: Entry, count: CountTokens) -> int:
    """What a resource, template or prompt costs where a list of them is shown to a model."""
    fields: Fields = {
        key: msgspec.Raw(encode_json(value)) for key, value in decoded(entry.raw).items() if key != "_meta"
    }
    return count(encode_json(fields).decode())


def cost_of_list(entries: Sequence[Entry], count: CountTokens) -> int:
    """What a whole list of tools costs."""
    return sum(cost_of_tool(entry, count).tokens for entry in entries)
