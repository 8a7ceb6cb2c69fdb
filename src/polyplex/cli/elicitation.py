"""Questions of a tool, asked field by field in the terminal; declined where nobody is there to answer."""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

from polyplex.cli.terminal import Terminal, one_line, stdin_is_terminal

Field = Mapping[str, Any]
LINE_BYTES: Final = 4096


class _Ended(Exception):
    """End of file instead of a line."""


class Questions:
    """Answers `elicitation/create` for the call of one tool."""

    def __init__(self, terminal: Terminal, tool: str) -> None:
        self._terminal = terminal
        self._tool = tool
        self._turn = asyncio.Lock()
        self.asking = False

    async def answer(self, params: dict[str, Any]) -> dict[str, Any]:
        """Accept with the values that were typed; decline for Ctrl-D, or without a terminal."""
        message = one_line(str(params.get("message", "")))
        if not (stdin_is_terminal() and self._terminal.interactive) or params.get("mode", "form") != "form":
            self._terminal.say(f"declined {self._tool} asks: {message} (nobody can be asked here)")
            return {"action": "decline"}
        async with self._turn:
            self.asking = True
            try:
                return {"action": "accept", "content": await self._ask(message, params)}
            except _Ended:
                self._terminal.say("\ndeclined")
                return {"action": "decline"}
            finally:
                self.asking = False

    async def _ask(self, message: str, params: dict[str, Any]) -> dict[str, Any]:
        terminal = self._terminal
        terminal.live("")
        terminal.say(f"{terminal.paint(self._tool, 'bold')} asks: {message}")
        schema = cast("dict[str, Any]", params.get("requestedSchema") or {})
        fields = cast("dict[str, Field]", schema.get("properties") or {})
        required = cast("list[str]", schema.get("required") or [])
        terminal.say(terminal.paint("Enter takes the default or skips what is optional; Ctrl-D declines.", "dim"))
        if not fields:
            await self._line("Enter to agree: ")
        content: dict[str, Any] = {}
        for name, field in fields.items():
            value = await self._field(name, field, name in required)
            if value is not None:
                content[name] = value
        return content

    async def _field(self, name: str, field: Field, required: bool) -> Any:
        if field.get("description"):
            self._terminal.say(self._terminal.paint(f"  {one_line(str(field['description']))}", "dim"))
        while True:
            text = await self._line(_prompt(name, field, required))
            if not text and ("default" in field or not required):
                return field.get("default")
            try:
                return read_value(text, field)
            except ValueError as error:
                self._terminal.say(f"  {error}")

    async def _line(self, prompt: str) -> str:
        """A line of the terminal, waited for without a thread, so that Ctrl-C works."""
        sys.stderr.write(prompt)
        sys.stderr.flush()
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        descriptor = sys.stdin.fileno()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
        line = os.read(descriptor, LINE_BYTES)
        if not line:
            raise _Ended
        return line.decode("utf-8", "replace").strip()


def choices(field: Field) -> dict[str, str]:
    """The values that a field may have, each with what it is called; empty where it is free."""
    source = cast("Field", field.get("items") or field)
    named = cast("list[Mapping[str, Any]]", source.get("oneOf") or source.get("anyOf") or [])
    if named:
        return {str(each.get("const")): str(each.get("title", each.get("const"))) for each in named}
    values = cast("list[Any]", source.get("enum") or [])
    titles = cast("list[Any]", field.get("enumNames") or values)
    return {str(value): str(title) for value, title in zip(values, titles, strict=False)}


def read_value(text: str, field: Field) -> Any:
    """A typed text as the value of a field. Raises `ValueError` that says what is expected."""
    kind = field.get("type", "string")
    allowed = choices(field)
    if kind == "array":
        items = [part.strip() for part in text.split(",") if part.strip()]
        return [_chosen(item, allowed) for item in items]
    if kind == "boolean":
        if text.lower() in ("y", "yes", "true"):
            return True
        if text.lower() in ("n", "no", "false"):
            return False
        raise ValueError("answer y or n")
    if kind in ("integer", "number"):
        return _number(text, kind, field)
    if not text:
        raise ValueError("an answer is needed")
    return _chosen(text, allowed)


def _number(text: str, kind: str, field: Field) -> int | float:
    try:
        value = int(text) if kind == "integer" else float(text)
    except ValueError:
        raise ValueError("a whole number is expected" if kind == "integer" else "a number is expected") from None
    if value < field.get("minimum", value) or value > field.get("maximum", value):
        raise ValueError(f"from {field.get('minimum', 'any')} to {field.get('maximum', 'any')}")
    return value


def _chosen(text: str, allowed: dict[str, str]) -> str:
    """A choice by its value, its title or its number."""
    if not allowed or text in allowed:
        return text
    if text.isdigit() and 1 <= int(text) <= len(allowed):
        return list(allowed)[int(text) - 1]
    for value, title in allowed.items():
        if title.lower() == text.lower():
            return value
    raise ValueError(f"one of: {', '.join(allowed)}")


def _default(value: object, allowed: dict[str, str]) -> str:
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return one_line(", ".join(allowed.get(str(each), str(each)) for each in values))


def _prompt(name: str, field: Field, required: bool) -> str:
    label = one_line(str(field.get("title") or name))
    allowed = choices(field)
    notes: list[str] = []
    if allowed:
        many = "several, with commas" if field.get("type") == "array" else "one"
        named = (f"{number} {one_line(title)}" for number, title in enumerate(allowed.values(), 1))
        notes.append(f"{many} of {', '.join(named)}")
    elif field.get("type") == "boolean":
        notes.append("y or n")
    elif field.get("type") in ("integer", "number"):
        notes.append("a number")
    elif field.get("format"):
        notes.append(one_line(str(field["format"])))
    if "default" in field:
        notes.append(f"default {_default(field['default'], allowed)}")
    elif not required:
        notes.append("optional")
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"  {label}{note}: "
