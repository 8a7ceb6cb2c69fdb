"""The help teaches: it fits a terminal, shows every command and option, and its examples are right."""

import json
import re
import shlex

import pytest

from polyplex.cli.arguments import parse
from polyplex.cli.commands import COMMANDS, DEFAULT_ADDRESS, EVERYWHERE, Command
from polyplex.cli.help_text import overview, page, usage

TERMINAL_WIDTH = 120
by_command = pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])


def test_the_overview_names_every_command_with_its_summary() -> None:
    for command in COMMANDS:
        assert re.search(rf"^  {command.name} +{re.escape(command.summary)}$", overview(), re.MULTILINE)


def test_the_overview_says_where_the_configuration_is_looked_for_and_what_a_client_needs() -> None:
    text = overview()
    places = ["--config FILE", "./polyplex.json", "./.mcp.json", "./.vscode/mcp.json", "~/.config/polyplex/config.json"]
    positions = [text.index(place) for place in places]
    assert positions == sorted(positions)
    entries = [
        json.loads(found) for found in re.findall(r'^  (\{"mcpServers": \{"polyplex".*?\}\}\})$', text, re.M | re.S)
    ]
    assert entries[0]["mcpServers"]["polyplex"]["url"] == f"http://{DEFAULT_ADDRESS}/mcp"
    assert entries[1]["mcpServers"]["polyplex"]["command"] == "polyplex"
    parse(entries[1]["mcpServers"]["polyplex"]["args"])


def test_the_example_configuration_is_json() -> None:
    example = re.search(r"^  \{\"mcpServers\": \{\n.*?^  \}\}$", overview(), re.MULTILINE | re.DOTALL)
    assert example is not None
    assert set(json.loads(example[0])["mcpServers"]) == {"time", "docs"}


@by_command
def test_a_page_shows_every_option_and_argument(command: Command) -> None:
    text = page(command)
    assert text.startswith(f"Usage: {usage(command)}\n")
    for option in (*command.options, *EVERYWHERE):
        assert f"{', '.join(option.names)} {option.value}".strip() in text
        assert option.summary in text
    for argument in command.arguments:
        assert argument.summary in text


@by_command
def test_the_examples_of_a_page_are_command_lines_that_parse(command: Command) -> None:
    for example in command.examples:
        first = re.split(r" [|<>]|\)", re.sub(r"^(eval \"\$\(|source <\()", "", example.line))[0]
        program, *words = shlex.split(first)
        assert program == "polyplex"
        assert parse(words).command is command


def test_every_line_fits_a_terminal() -> None:
    texts = [overview(), *map(page, COMMANDS)]
    assert [line for text in texts for line in text.splitlines() if len(line) > TERMINAL_WIDTH] == []


def test_nothing_is_broken_within_words_where_a_terminal_has_eighty_columns() -> None:
    texts = [overview(80), *(page(command, 80) for command in COMMANDS)]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


def test_on_a_narrow_terminal_tables_stay_in_their_columns() -> None:
    texts = [overview(60), *(page(command, 60) for command in COMMANDS)]
    lines = [line for text in texts for line in text.splitlines()]
    assert [line for line in lines if len(line) > 60 and '{"' not in line] == []
    assert "  serve         offer all configured servers at one address,\n                or on stdin" in texts[0]
    assert "  polyplex serve --http 127.0.0.1:8000\n      at another port\n" in texts[1]


def test_usage_shows_what_is_optional_and_what_repeats() -> None:
    assert [usage(command) for command in COMMANDS] == [
        "polyplex serve [options]",
        "polyplex tools [QUERY...] [options]",
        "polyplex call NAME [ARGUMENTS] [options]",
        "polyplex lint [SERVER...] [options]",
        "polyplex cost [options]",
        "polyplex doctor [options]",
        "polyplex config check [options]",
        "polyplex completion SHELL [options]",
    ]
