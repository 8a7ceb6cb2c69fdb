"""Which tools a client is listed."""

import json
from typing import Any

import pytest
from msgspec import Raw

from polyplex.config.model import ClientOptions, GatewayOptions, ServerOptions, ToolOptions
from polyplex.content.tokens import estimate
from polyplex.downstream.session import Call
from polyplex.gateway.builtins import Builtins, BuiltinTool, always, builtin_entry, when_searching
from polyplex.gateway.client import Client
from polyplex.gateway.exposure import Exposure, listed_tokens
from polyplex.gateway.instructions import MAX_CHARACTERS, for_search
from polyplex.gateway.profile import Profile, Profiles
from polyplex.mux.entries import Entry

SEARCH, ALL, AUTO = Profile("search"), Profile("all"), Profile("auto")


async def nothing(call: Call, client: Client, arguments: dict[str, Any]) -> bytes:
    raise AssertionError


def builtins() -> Builtins:
    made = Builtins()
    for name, listed in (("find", when_searching), ("read", always)):
        made.add(BuiltinTool(builtin_entry(name, name, name, {"type": "object"}), nothing, listed))
    return made


def entry(key: str, size: int = 10) -> Entry:
    server, _, local = key.partition("__")
    return Entry(server, local, key, json.dumps({"name": key, "description": "word " * size}).encode())


def shown(options: GatewayOptions, profile: Profile, *keys: str) -> list[str]:
    entries = [entry(key) for key in keys]
    return [each.key for each in Exposure(options, builtins().entries).shown(entries, profile).entries]


def test_all_or_only_the_search_tools_or_neither_in_a_library() -> None:
    assert shown(GatewayOptions(), ALL, "a__x") == ["polyplex__read", "a__x"]
    assert shown(GatewayOptions(), SEARCH, "a__x") == ["polyplex__find", "polyplex__read"]
    assert shown(GatewayOptions(), Profile("all", builtins=False), "a__x") == ["a__x"]


def test_pinned_tools_are_listed_by_pattern_or_by_their_own_option() -> None:
    own = {"b": ServerOptions(tools={"y": ToolOptions(pinned=True), "z": ToolOptions()})}
    options = GatewayOptions(pinned_tools=("a__?", "c__read*"), servers=own)
    keys = ("a__x", "a__xx", "b__y", "b__z", "c__read_file", "c__write")
    assert shown(options, SEARCH, *keys)[2:] == ["a__x", "b__y", "c__read_file"]


def test_auto_lists_all_up_to_the_budget_and_does_not_care_for_order() -> None:
    entries = [entry("a__x", 20), entry("a__y", 300), entry("a__z", 5)]
    cost = sum(map(listed_tokens, entries))
    for budget, searching in ((cost, False), (cost - 1, True)):
        exposure = Exposure(GatewayOptions(tool_budget_tokens=budget), builtins().entries)
        for order in (entries, entries[::-1]):
            assert exposure.searching(order, AUTO) is searching
            assert (len(exposure.shown(order, AUTO).entries) == 2) is searching
    assert not Exposure(GatewayOptions(tool_budget_tokens=1), builtins().entries).searching([], AUTO)


def test_a_budget_counts_what_models_get_of_a_tool() -> None:
    tool: dict[str, Any] = {"name": "a__x", "description": "Does x.", "inputSchema": {"type": "object"}}
    more = {"outputSchema": {"type": "object", "description": "word " * 200}, "_meta": {"a": "b" * 200}, "title": "X"}
    bare, rich = (Entry("a", "x", "a__x", json.dumps(each).encode()) for each in (tool, tool | more))
    assert listed_tokens(bare) == listed_tokens(rich)
    assert listed_tokens(bare) < estimate(bare.raw) + 5
    assert listed_tokens(Entry("a", "x", "a__x", b"no JSON")) == estimate(b"no JSON")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Claude Desktop", Profile("all", "bounded")),
        ("claude-code", Profile("search", "raw")),
        ("other", Profile("auto", "bounded")),
        ("", Profile("auto", "bounded")),
    ],
)
def test_profiles_take_each_option_from_the_first_pattern_that_sets_it(name: str, expected: Profile) -> None:
    clients = {
        "Claude*": ClientOptions(expose="all"),
        "claude-*": ClientOptions(results="raw"),
        "claude-code": ClientOptions(expose="search", results="bounded"),
    }
    profiles = Profiles(GatewayOptions(clients=clients))
    assert profiles.of(json.dumps({"name": name}).encode()) == expected
    assert profiles.vary


@pytest.mark.parametrize("info", [b"", b"{", b"[]", b'{"name": 5}', b"{}"])
def test_a_client_without_a_usable_name_has_the_default(info: bytes) -> None:
    profiles = Profiles(GatewayOptions(clients={"x*": ClientOptions(expose="all")}))
    assert profiles.of(info) == profiles.default == Profile("auto", "bounded")
    assert not Profiles(GatewayOptions(clients={"x": ClientOptions(results="raw")})).vary


def test_another_polyplex_gets_everything_unless_it_is_told_apart() -> None:
    info = b'{"name":"polyplex","version":"1"}'
    assert Profiles(GatewayOptions(expose="search")).of(info) == Profile("all", "raw", builtins=False)
    assert Profiles(GatewayOptions()).of(b'{"name":"not polyplex"}') == Profile("auto", "bounded")
    for own, expected in (
        (ClientOptions(expose="auto"), Profile("auto", "raw")),
        (ClientOptions(results="bounded"), Profile("all", "bounded")),
        (ClientOptions(expose="all"), Profile("all", "raw", builtins=False)),
    ):
        assert Profiles(GatewayOptions(clients={"poly*": own})).of(info) == expected


def test_built_in_tools_are_found_however_json_spells_their_name() -> None:
    made = builtins()
    for raw in (b'"polyplex__find"', b'"polyplex\\u005f_find"'):
        found = made.named("tools/call", {"name": json_raw(raw)})
        assert found is not None
        assert found.entry.local == "find"
    assert made.named("prompts/get", {"name": json_raw(b'"polyplex__find"')}) is None
    assert made.named("tools/call", {}) is made.named("tools/call", {"name": json_raw(b'"a__find"')}) is None


def json_raw(raw: bytes) -> Raw:
    return Raw(raw)


@pytest.mark.parametrize("servers", [0, 1, 5, 70, 5000])
def test_instructions_for_search_are_bounded_and_say_how(servers: int) -> None:
    counts = {f"server-{number}": number + 1 for number in range(servers)}
    texts = {name: f"About {name}. " + "word " * 500 for name in counts}
    text = for_search(sum(counts.values()), counts, texts)
    assert len(text) <= MAX_CHARACTERS
    assert "polyplex__find_tools(query)" in text.splitlines()[0]
    assert "polyplex__call_tool(name, arguments)" in text.splitlines()[0]
    if servers in (1, 5):
        assert all(f"# {name}\nAbout {name}. word" in text for name in counts)
    if servers == 5000:
        assert "server-4999 (5000)" in text
        assert "4940 more" in text


def test_short_instructions_stay_whole() -> None:
    assert for_search(2, {"a": 2, "b": 0}, {"a": "Line.\n\nOther line."}).endswith("\n\n# a\nLine.\n\nOther line.")
