"""What the scripted peer offers, by revision: each member from the revision on that brought it."""

from tests.matrix.peer.words import MODERN, R2, R3, R4, TASKS_EXTENSION, UI_EXTENSION, VENDOR_EXTENSION, Json, since

MEMBERS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
PNG = "iVBORw0KGgo="
WAV = "UklGRgAAAABXQVZF"
ITEMS = 1005
PLAIN = (
    "echo", "journal", "fail", "refuse", "show", "ask", "steps", "hold", "release", "was_cancelled", "say", "touch",
    "grow", "large",
)  # fmt: skip
ICON: Json = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
_OBJECT: Json = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
_SHOWN: dict[str, Json] = {
    "image": {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
    "embedded": {"content": [{"type": "resource", "resource": {"uri": "peer://embedded", "text": "embedded text"}}]},
    "audio": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}, {"type": "text", "text": "after"}]},
    "link": {"content": [{"type": "resource_link", "uri": "peer://linked", "name": "linked", "title": "A link"}]},
    "object": {"content": [{"type": "text", "text": '{"count": 3}'}], "structuredContent": {"count": 3}},
    "list": {"content": [{"type": "text", "text": "[1, 2, 3]"}], "structuredContent": [1, 2, 3]},
    "vendor": {
        "content": [{"type": "text", "text": "x", "_meta": {"example.com/block": 1}}],
        "_meta": {"example.com/result": {"deep": [None, 2**60]}},
    },
}


def shown(what: str) -> Json:
    """A prepared tool result."""
    return dict(_SHOWN[what])


def capabilities(revision: str) -> Json:
    """The server's capabilities."""
    found: Json = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "logging": {},
        "experimental": {"example.com/experiment": {"level": 1}},
    }
    if revision in since(R2):
        found["completions"] = {}
    if revision == R4:
        found["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    if revision == MODERN:
        found["extensions"] = {TASKS_EXTENSION: {}, UI_EXTENSION: {}, VENDOR_EXTENSION: {"level": 2}}
    return found


def lists(revision: str) -> dict[str, list[Json]]:
    """All lists by member."""
    return {
        "tools": _tools(revision),
        "resources": _resources(),
        "resourceTemplates": [{"uriTemplate": "peer://of/{name}", "name": "of", "mimeType": "text/plain"}],
        "prompts": [
            {"name": "greeting", "description": "Greets.", "arguments": [{"name": "who", "required": True}]},
            {"name": "asking"},
        ],
    }


def _tools(revision: str) -> list[Json]:
    tools: list[Json] = [{"name": name, "inputSchema": {"type": "object"}} for name in PLAIN]
    app: Json = {"name": "structured", "description": "Shows an app.", "inputSchema": {"type": "object"}}
    app["_meta"] = {"ui": {"resourceUri": "ui://app/main"}, "example.com/tool": True}
    if revision in since(R2):
        app["annotations"] = {"readOnlyHint": True, "title": "Old title"}
    if revision in since(R3):
        app |= {"title": "Structured", "outputSchema": _OBJECT}
    if revision in since(R4):
        app["icons"] = [ICON]
        tools += [{"name": name, "inputSchema": {"type": "object"}} for name in ("permit", "visit")]
        job: Json = {"name": "job", "inputSchema": {"type": "object"}}
        tools.append(job | ({"execution": {"taskSupport": "required"}} if revision == R4 else {}))
    if revision == MODERN:
        schema = {"type": "array", "items": {"type": "integer"}}
        tools.append({"name": "counted", "inputSchema": {"type": "object"}, "outputSchema": schema})
        region = {"region": {"type": "string", "x-mcp-header": "Region"}, "plain": {"type": "string"}}
        tools.append({"name": "regional", "inputSchema": {"type": "object", "properties": region}})
    return [*tools, app]


def _resources() -> list[Json]:
    named = [{"uri": f"peer://{name}", "name": name} for name in ("note", "blob", "asking")]
    app: Json = {"uri": "ui://app/main", "name": "app", "mimeType": "text/html;profile=mcp-app"}
    return [*named, app, *({"uri": f"peer://item/{number}", "name": f"item {number}"} for number in range(ITEMS))]


def grown(kind: str) -> Json:
    """What a list grows by."""
    if kind == "resources":
        return {"uri": "peer://grown", "name": "grown"}
    return {"name": "grown"} | ({"inputSchema": {"type": "object"}} if kind == "tools" else {})
