"""What clients are told of the servers where tools are searched for: bounded, however many servers there are."""

from collections.abc import Mapping
from typing import Final

from polyplex.catalog.signatures import one_line, shortened

MAX_CHARACTERS: Final = 3000
LEAST_CHARACTERS: Final = 60
MAX_SERVERS: Final = 60


def for_search(tools: int, counts: Mapping[str, int], texts: Mapping[str, str]) -> str:
    """How to find and call tools, which servers there are, and as much of their own instructions as there is room."""
    head = (
        f"{tools} tools are not listed here. polyplex__find_tools(query) finds those that fit what you need; "
        "polyplex__call_tool(name, arguments) calls one.\n"
        f"They are of these servers: {server_list(counts)}."
    )
    room = MAX_CHARACTERS - len(head)
    if sum(len(name) + len(text) + 4 for name, text in texts.items()) <= room:
        parts = [f"# {name}\n{text}" for name, text in texts.items()]
    else:
        share = room // max(1, len(texts))
        cut = {
            name: one_line(text, share - len(name) - 4)
            for name, text in texts.items()
            if share > LEAST_CHARACTERS + len(name)
        }
        parts = [f"# {name}\n{text}" for name, text in cut.items()]
    return "\n\n".join([head, *parts])


def server_list(counts: Mapping[str, int]) -> str:
    """The servers with the number of their tools, those with the most first where not all fit."""
    named = [(name, number) for name, number in counts.items() if number]
    if len(named) > MAX_SERVERS:
        named.sort(key=lambda item: -item[1])
    texts = [f"{shortened(name, 40)} ({number})" for name, number in named[:MAX_SERVERS]]
    more = len(named) - len(texts)
    return ", ".join(texts if more <= 0 else [*texts, f"{more} more"]) or "none so far"
