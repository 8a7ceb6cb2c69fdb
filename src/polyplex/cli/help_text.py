"""The help: what polyplex is and where to begin, and a page for each command."""

import re
import textwrap
from typing import Final

from polyplex.cli.commands import (
    COMMANDS,
    DEFAULT_ADDRESS,
    EVERYWHERE,
    HELP,
    VERSION,
    Argument,
    Command,
    Example,
    Option,
)
from polyplex.version import version

WIDTH: Final = 96
LEAST_ROOM: Final = 24
_ROW: Final = re.compile(r"  +\S.*?  +(?=\S)")
PLACES: Final = ("./polyplex.json", "./.mcp.json", "./.vscode/mcp.json", "~/.config/polyplex/config.json")
CLIENT_HTTP: Final = '{"mcpServers": {"polyplex": {"url": "http://%s/mcp"}}}'
CLIENT_STDIO: Final = (
    '{"mcpServers": {"polyplex": {"command": "polyplex",\n'
    '                               "args": ["serve", "--stdio", "--config", "FILE"]}}}'
)

_OVERVIEW: Final = f"""\
Start here:
  polyplex serve             serve the configured servers at http://{DEFAULT_ADDRESS}/mcp
  polyplex doctor            find out why a server does not work
  polyplex tools read file   search the tools of all servers
  polyplex call time__get_current_time '{{"timezone": "Europe/Berlin"}}'

The configuration is the file that MCP clients have, JSON with comments. The first found is used:
  --config FILE
  {(chr(10) + "  ").join(PLACES)}
For example:
  {{"mcpServers": {{
    "time": {{"command": "uvx", "args": ["mcp-server-time"]}},
    "docs": {{"url": "https://example.com/mcp",
             "headers": {{"Authorization": "Bearer ${{DOCS_TOKEN}}"}}}}
  }}}}

A client then needs one entry, in place of all the others. To reach a running `polyplex serve`:
  {CLIENT_HTTP % DEFAULT_ADDRESS}
or to start polyplex itself:
  {CLIENT_STDIO}

polyplex COMMAND --help explains a command."""


def overview(width: int = WIDTH) -> str:
    """The help of polyplex itself."""
    sections = (
        f"polyplex {version()}: one endpoint in front of all your MCP servers",
        "Usage: polyplex COMMAND [options]",
        f"Commands:\n{_rows([(command.name, command.summary) for command in COMMANDS])}",
        f"Options:\n{_options((HELP, VERSION))}",
        _OVERVIEW,
    )
    return fitted("\n\n".join(sections), width)


def page(command: Command, width: int = WIDTH) -> str:
    """The help of one command."""
    sections = [f"Usage: {usage(command)}", f"{command.summary[0].upper()}{command.summary[1:]}."]
    sections += [textwrap.fill(paragraph, width) for paragraph in command.text]
    if command.arguments:
        rows = [(argument.name, argument.summary) for argument in command.arguments]
        sections.append(f"Arguments:\n{_rows(rows)}")
    sections.append(f"Options:\n{_options((*command.options, *EVERYWHERE))}")
    if command.examples:
        sections.append(f"Examples:\n{_examples(command.examples)}")
    if any(option.is_file for option in command.options):
        sections.append(f"Without --config, the first of these is used:\n  {', '.join(PLACES)}")
    return fitted("\n\n".join(sections), width)


def fitted(text: str, width: int) -> str:
    """The text with lines that are too long for a terminal broken between words, tables in their columns.

    Lines with JSON are left whole, to be copied.
    """
    if width >= WIDTH:
        return text
    return "\n".join(line if '{"' in line else _broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    row = _ROW.match(line)
    if row is None:
        return _wrapped(line, width, len(line) - len(line.lstrip()))
    column = len(row[0])
    if width - column >= LEAST_ROOM:
        return _wrapped(line, width, column)
    indent = 6
    return f"{row[0].rstrip()}\n{_wrapped(' ' * indent + line[column:], width, indent)}"


def _wrapped(line: str, width: int, indent: int) -> str:
    return textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def usage(command: Command) -> str:
    """One line: the command and what it takes."""
    parts = ["polyplex", command.name, *map(_argument, command.arguments)]
    return " ".join((*parts, "[options]"))


def _argument(argument: Argument) -> str:
    name = f"{argument.name}..." if argument.repeats else argument.name
    return name if argument.required else f"[{name}]"


def _options(options: tuple[Option, ...]) -> str:
    rows = [
        (f"{', '.join(option.names)} {option.value}".strip(), _with_choices(option.summary, option.choices))
        for option in options
    ]
    aligned = any(name.startswith("-") and not name.startswith("--") for name, _ in rows)
    return _rows([(f"    {name}" if aligned and name.startswith("--") else name, summary) for name, summary in rows])


def _with_choices(summary: str, choices: tuple[str, ...]) -> str:
    return f"{summary}: {', '.join(choices)}" if choices else summary


def _rows(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {summary}" for name, summary in rows)


def _examples(examples: tuple[Example, ...]) -> str:
    width = max((len(example.line) for example in examples if example.effect), default=0)
    return "\n".join(f"  {example.line:<{width}}  {example.effect}".rstrip() for example in examples)
