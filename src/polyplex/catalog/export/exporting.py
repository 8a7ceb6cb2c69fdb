"""Tools of MCP servers as the tools of a model provider, and calls and results of the one as those of the other."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, cast

import msgspec

from polyplex.catalog.export import mapping
from polyplex.catalog.export.calls import read_arguments, read_call
from polyplex.catalog.export.dialects import DEFAULT_FORMS, Dialect, find_dialect
from polyplex.catalog.export.emitting import emit_root
from polyplex.catalog.export.naming import legal_name
from polyplex.catalog.export.nodes import BadSchema, Node
from polyplex.catalog.export.packing import pack, too_large, too_open
from polyplex.catalog.export.reader import read_schema
from polyplex.catalog.export.results import result_message
from polyplex.catalog.export.shaping import shape
from polyplex.catalog.export.words import describe, shorten
from polyplex.errors import ExportError

Provider = Literal["openai", "anthropic", "gemini"]


_Entry = tuple["ExportedTool", mapping.Mapping | None]
_Table = Mapping[str, _Entry]


class Aside(NamedTuple):
    """A tool that is not exported, and why."""

    name: str
    reason: str


class ExportedTool(msgspec.Struct, frozen=True):
    """One tool: what the provider is given, and the public name that stands behind `name`.

    `notes` says what became of a wish: a tool that is too open for strict mode is exported without it.
    """

    name: str
    public: str
    declaration: dict[str, Any]
    notes: tuple[str, ...] = ()


class Export:
    """Tools in the form of a provider. `aside` names those that it cannot be given, with the reason."""

    def __init__(
        self, dialect: Dialect, exported: list[tuple[ExportedTool, mapping.Mapping | None]], aside: list[Aside]
    ):
        self.provider, self.form, self.aside = dialect.provider, dialect.form, tuple(aside)
        self.exported: tuple[ExportedTool, ...] = tuple(tool for tool, _ in exported)
        self._dialect = dialect
        self._by_name = {tool.name: (tool, way) for tool, way in exported}
        self._by_public = {tool.public: (tool, way) for tool, way in exported}

    @property
    def declarations(self) -> list[dict[str, Any]]:
        """One declaration for each tool."""
        return [tool.declaration for tool in self.exported]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """What the provider's API takes as `tools`: the declarations; for Gemini, one tool that holds them all."""
        if self.provider != "gemini":
            return self.declarations
        return [{"functionDeclarations": self.declarations}] if self.exported else []

    @property
    def too_many(self) -> str:
        """What to do where the provider takes fewer tools in one request; empty where it takes them all."""
        limit = self._dialect.max_tools
        if len(self.exported) <= limit:
            return ""
        return (
            f"{self.provider} takes {limit} tools in one request, these are {len(self.exported)}: "
            "export those that the turn needs, such as `find_tools` finds"
        )

    def name_of(self, public: str) -> str:
        """The name under which the provider knows a tool. Raises `ExportError`."""
        return self._find(self._by_public, public)[0].name

    def original(self, name: str, arguments: Mapping[str, Any] | str) -> tuple[str, dict[str, Any]]:
        """The public name and the server's arguments for a call that a model made, as an object or JSON text.

        Raises `ExportError`.
        """
        tool, way = self._find(self._by_name, name)
        given = read_arguments(tool.name, arguments)
        return tool.public, given if way is None else way.original(given)

    def arguments_for(self, public: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The provider's name and arguments for a call of the tool itself, such as for the history of a conversation.

        Raises `ExportError`.
        """
        tool, way = self._find(self._by_public, public)
        given = read_arguments(tool.name, arguments)
        return tool.name, given if way is None else way.exported(given)

    def call_of(self, call: Any) -> tuple[str, dict[str, Any]]:
        """The public name and the server's arguments of a provider's tool-call object.

        That is a `tool_call` or `function_call` item of OpenAI, a `tool_use` block of Anthropic, a `functionCall` of
        Gemini or the part that holds it; as JSON or as an object of the SDK. Raises `ExportError`.
        """
        read = read_call(self.provider, call)
        return self.original(read.name, read.arguments)

    def result_for(self, call: Any, result: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool as the message that answers the provider's tool-call object.

        Only the name and the id of the call are read: one with arguments that cannot be read is answered as well.
        Raises `ExportError` where there is no call.
        """
        return result_message(self._dialect, read_call(self.provider, call, arguments=False), result)

    def _find(self, table: "_Table", name: str) -> "_Entry":
        found = table.get(name)
        if found is None:
            raise ExportError(f"no tool {str(name)[:80]!r} was exported to {self.provider}: {self._hint()}")
        return found

    def _hint(self) -> str:
        names = [tool.name for tool in self.exported[:5]]
        return (
            ("there are " + ", ".join(names) + ("…" if len(self.exported) > 5 else "")) if names else "there are none"
        )


def export(
    provider: Provider | str, tools: Iterable[Mapping[str, Any]], *, form: str = "", strict: bool = False
) -> Export:
    """Tools as in `tools/list` for a provider: "openai", "anthropic" or "gemini".

    `form` is "chat" or "responses" for OpenAI, "json_schema" or "openapi" for Gemini; the first is the default.
    `strict` asks for the strict mode of OpenAI. A schema accepts what the server's accepts wherever the provider can
    say so; what it cannot say stands in the descriptions. Raises `ValueError` for an unknown provider or form.
    """
    dialect = find_dialect(provider, form, strict)
    loose = find_dialect(provider, form or DEFAULT_FORMS[provider], strict=False)
    given = list(tools)
    taken = {name for name in map(_name, given) if dialect.tool_name.fullmatch(name)}
    seen: set[str] = set()
    exported: list[tuple[ExportedTool, mapping.Mapping | None]] = []
    aside: list[Aside] = []
    for tool in given:
        public = _name(tool)
        try:
            if not public:
                raise BadSchema("it has no name")
            if public in seen:
                raise BadSchema("there is another tool of this name")
            seen.add(public)
            name = legal_name(public, dialect.tool_name, taken)
            taken.add(name)
            exported.append(_export_one(tool, public, name, dialect, loose))
        except BadSchema as problem:
            aside.append(Aside(public or str(tool)[:60], str(problem)))
        except RecursionError:
            aside.append(Aside(public or "", "its schema is nested too deeply"))
    return Export(dialect, exported, aside)


def _name(tool: Any) -> str:
    name = cast("Mapping[str, Any]", tool).get("name") if isinstance(tool, Mapping) else None
    return name if isinstance(name, str) else ""


def _export_one(
    tool: Mapping[str, Any], public: str, name: str, dialect: Dialect, loose: Dialect
) -> tuple[ExportedTool, mapping.Mapping | None]:
    schema = tool.get("inputSchema")
    if schema is None:
        raise BadSchema("it has no input schema")
    notes: tuple[str, ...] = ()
    root, definitions = _prepare(schema, dialect)
    if dialect.strict:
        reason = "its schema leaves open which arguments there are" if too_open(root) else ""
        reason = reason or too_large(*pack(root, definitions, dialect))
        if reason:
            dialect, notes = loose, (f"not strict: {reason}",)
            root, definitions = _prepare(schema, dialect)
    if dialect.typed:
        root, definitions = pack(root, definitions, dialect)
    parameters = emit_root(root, definitions, dialect)
    made = ExportedTool(name, public, _declare(tool, name, parameters, dialect), notes)
    changed = mapping.changes(root, definitions)
    return made, mapping.Mapping(root, definitions) if changed else None


def _prepare(schema: Any, dialect: Dialect) -> tuple[Node, dict[str, Node]]:
    root, definitions = read_schema(schema, keep_references=dialect.references, closed=dialect.typed)
    return shape(root, definitions, dialect)


def _declare(tool: Mapping[str, Any], name: str, parameters: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    text = _description(tool, parameters, dialect)
    function: dict[str, Any] = {"name": name} | ({"description": text} if text else {})
    if dialect.provider == "anthropic":
        return function | {"input_schema": parameters}
    if dialect.provider == "gemini":
        key = "parameters" if dialect.form == "openapi" else "parametersJsonSchema"
        # An object without properties is refused; no parameters are said by leaving them out.
        return function | ({key: parameters} if parameters["properties"] or dialect.form != "openapi" else {})
    function |= {"parameters": parameters}
    if dialect.form == "responses":
        return {"type": "function"} | function | {"strict": dialect.strict}
    return {"type": "function", "function": function | ({"strict": True} if dialect.strict else {})}


def _description(tool: Mapping[str, Any], parameters: dict[str, Any], dialect: Dialect) -> str:
    own = tool.get("description")
    title = tool.get("title")
    text = own if isinstance(own, str) and own.strip() else title if isinstance(title, str) else ""
    # What the schema says of all arguments together is read where the tool is described.
    words = parameters.pop("description", "")
    if words and words not in text:
        return describe(Node(description=text, notes=[words]), [], dialect.description)
    return shorten(text.strip(), dialect.description)
