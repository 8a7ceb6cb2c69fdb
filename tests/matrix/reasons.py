"""Where the protocol itself has no such thing, or only a poorer one: the sentence of the specification that says so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.matrix.peer.words import LEGACY, MODERN, R1, R2, R3, R4

Kind = Literal["absent", "reduced"]
Where = Callable[[str, str], bool]
"""Whether a reason holds, by the revisions of client and server."""
SITE = "https://modelcontextprotocol.io/specification/"
TASKS_SITE = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/"


@dataclass(frozen=True)
class Reason:
    """`kind` absent: one side has no such thing. `kind` reduced: the client gets it in the form that its revision has.

    `sentence` is quoted from `page` of the specification (revision first); `text` says what follows from it.
    """

    name: str
    kind: Kind
    features: tuple[str, ...]
    where: Where
    text: str
    sentence: str
    page: str

    @property
    def link(self) -> str:
        """The page on the web."""
        return TASKS_SITE + self.page.partition("/")[2] if self.page.startswith("ext-tasks/") else SITE + self.page


def _client(*revisions: str) -> Where:
    return lambda client, server: client in revisions


def _server(*revisions: str) -> Where:
    return lambda client, server: server in revisions


STRUCTURED = "Add support for [structured tool output](/specification/2025-06-18/server/tools#structured-content)"
ELICITATION = "Add support for **[elicitation](/specification/2025-06-18/client/elicitation)**"
URL = "Added support for [URL mode elicitation](/specification/2025-11-25/client/elicitation#url-elicitation-requests)"
LINKS = (
    "Add support for **[resource links](/specification/2025-06-18/server/tools#resource-links)** in tool call results."
)
SAMPLING_TOOLS = "Add tool calling support to sampling via `tools` and `toolChoice` parameters"
AUDIO = "Added support for audio data, joining the existing text and image content types"
CONTEXT = (
    "Add `context` field to `CompletionRequest`, providing for completion requests to include previously-resolved "
    "variables"
)
ANY_VALUE = (
    "Loosen `inputSchema` and `outputSchema` to allow any JSON Schema 2020-12 keywords, and `structuredContent` to "
    "allow any JSON value."
)
REMOVED = "Remove `ping`, `logging/setLevel`, and `notifications/roots/list_changed`."
EXTENSIONS = "Add `extensions` field to `ClientCapabilities` and `ServerCapabilities`"
NO_RESUMPTION = (
    "Remove SSE stream resumability and message redelivery (the `Last-Event-ID` header and SSE event IDs) from the "
    "Streamable HTTP transport."
)
STREAMABLE = "Replaced the previous HTTP+SSE transport with a more flexible **[Streamable HTTP transport]"
NO_COMPLETE = (
    "Remove the `notifications/elicitation/complete` notification and the `elicitationId` field of URL mode "
    "elicitation requests, both introduced in `2025-11-25`."
)
NO_SESSIONS = "Remove protocol-level sessions and the `Mcp-Session-Id` header from the Streamable HTTP transport."
HEADERS = (
    "Require standard MCP request headers (`Mcp-Method`, `Mcp-Name`) on Streamable HTTP POST requests, and add support "
    "for custom headers from tool parameters via `x-mcp-header`"
)
BATCHES = "Added support for JSON-RPC **[batching](https://www.jsonrpc.org/specification#batch)**"
NO_BATCHES = "Remove support for JSON-RPC **[batching](https://www.jsonrpc.org/specification#batch)**"
TASKS = "Add experimental support for [tasks](/specification/2025-11-25/basic/utilities/tasks)"
NEEDS_TASKS = (
    "If a server is unable to service a request to a client that does not declare this extension capability without "
    "returning `CreateTaskResult`, the server **MUST** return an error with the code `-32021` (Missing Required Client "
    "Capability), indicating the required extension in the error response"
)
NO_TASK_LIST = (
    "The redesigned extension replaces the blocking `tasks/result` method with polling via `tasks/get` and a new "
    "`tasks/update` for client-to-server input, removes `tasks/list`"
)
C2, C3, C4, C5 = (f"{revision}/changelog" for revision in (R2, R3, R4, MODERN))
_TASKS = ("tasks", "task_input", "task_cancel", "task_list")
_FORMS = ("elicitation_form",)
_URLS = ("elicitation_url", "elicitation_complete")

REASONS: tuple[Reason, ...] = (
    # -- what the server's revision does not have
    Reason("audio-server", "absent", ("audio",), _server(R1), "The server has no audio.", AUDIO, C2),
    Reason("links-server", "absent", ("resource_links",), _server(R1, R2), "The server has no links.", LINKS, C3),
    Reason(
        "structured-server",
        "absent",
        ("structured",),
        _server(R1, R2),
        "The server has no structured results.",
        STRUCTURED,
        C3,
    ),
    Reason(
        "any-value-server",
        "absent",
        ("structured_list",),
        _server(*LEGACY),
        "Structured results of such a server are objects.",
        ANY_VALUE,
        C5,
    ),
    Reason(
        "headers-server",
        "absent",
        ("parameter_headers",),
        _server(*LEGACY),
        "The server knows no such annotation.",
        HEADERS,
        C5,
    ),
    Reason("context-server", "absent", ("completion_context",), _server(R1, R2), "The server knows none.", CONTEXT, C3),
    Reason(
        "extensions-server",
        "absent",
        ("extensions",),
        _server(*LEGACY),
        "The server cannot declare any.",
        EXTENSIONS,
        C5,
    ),
    Reason("form-server", "absent", _FORMS, _server(R1, R2), "The server does not elicit.", ELICITATION, C3),
    Reason(
        "url-server",
        "absent",
        (*_URLS, "url_required"),
        _server(R1, R2, R3),
        "The server does not elicit by URL.",
        URL,
        C4,
    ),
    Reason(
        "sampling-tools-server",
        "absent",
        ("sampling_tools",),
        _server(R1, R2, R3),
        "The server's sampling has no tools.",
        SAMPLING_TOOLS,
        C4,
    ),
    Reason(
        "roots-changed-server",
        "absent",
        ("roots_changed",),
        _server(MODERN),
        "The server has no use for it: it asks for the roots anew each time.",
        REMOVED,
        C5,
    ),
    Reason(
        "resumption-old-server",
        "absent",
        ("upstream_resumption",),
        _server(R1),
        "The transport that resumes came later.",
        STREAMABLE,
        C2,
    ),
    Reason(
        "resumption-server",
        "absent",
        ("upstream_resumption",),
        _server(MODERN),
        "A stream of the server that breaks loses the call.",
        NO_RESUMPTION,
        C5,
    ),
    Reason(
        "tasks-server", "absent", (*_TASKS, "task_wait"), _server(R1, R2, R3), "The server has no tasks.", TASKS, C4
    ),
    # -- what the client's revision does not have
    Reason("tasks-client", "absent", _TASKS, _client(R1, R2, R3), "The client knows no tasks.", TASKS, C4),
    Reason(
        "task-wait-modern",
        "absent",
        ("task_wait",),
        lambda client, server: client == server == MODERN,
        "The client is told what it has to declare, as by the server itself.",
        NEEDS_TASKS,
        "ext-tasks/specification/draft/tasks.md",
    ),
    Reason(
        "task-list-client",
        "absent",
        ("task_list",),
        _client(MODERN),
        "The client has no such request.",
        NO_TASK_LIST,
        C5,
    ),
    Reason("context-client", "absent", ("completion_context",), _client(R1, R2), "The client sends none.", CONTEXT, C3),
    Reason("form-client", "absent", _FORMS, _client(R1, R2), "The client cannot be asked.", ELICITATION, C3),
    Reason("url-client", "absent", _URLS, _client(R1, R2, R3), "The client cannot be sent to a URL.", URL, C4),
    Reason(
        "sampling-tools-client",
        "absent",
        ("sampling_tools",),
        _client(R1, R2, R3),
        "The client cannot declare `sampling.tools`.",
        SAMPLING_TOOLS,
        C4,
    ),
    Reason(
        "complete-client",
        "absent",
        ("elicitation_complete",),
        _client(MODERN),
        "The client learns the outcome when its retry is answered.",
        NO_COMPLETE,
        C5,
    ),
    Reason(
        "roots-changed-client", "absent", ("roots_changed",), _client(MODERN), "The client cannot tell.", REMOVED, C5
    ),
    Reason("ping-client", "absent", ("ping",), _client(MODERN), "The client has no ping.", REMOVED, C5),
    Reason(
        "extensions-client",
        "absent",
        ("extensions",),
        _client(*LEGACY),
        "The client cannot declare any.",
        EXTENSIONS,
        C5,
    ),
    Reason("sessions-client", "absent", ("sessions",), _client(MODERN), "There are no sessions.", NO_SESSIONS, C5),
    Reason(
        "resumption-old-client",
        "absent",
        ("resumption",),
        _client(R1),
        "The transport that resumes came later.",
        STREAMABLE,
        C2,
    ),
    Reason(
        "resumption-client",
        "absent",
        ("resumption",),
        _client(MODERN),
        "A stream of the client that breaks loses the call; tasks are what lasts.",
        NO_RESUMPTION,
        C5,
    ),
    Reason("batches-old-client", "absent", ("batches",), _client(R1), "The client has no batches.", BATCHES, C2),
    Reason("batches-client", "absent", ("batches",), _client(R3, R4, MODERN), "No batches any more.", NO_BATCHES, C3),
    # -- what the client's revision has in a poorer form
    Reason(
        "audio-client",
        "reduced",
        ("audio",),
        _client(R1),
        "The client knows no audio: it gets the data as an embedded resource or as text that says what was there.",
        AUDIO,
        C2,
    ),
    Reason(
        "links-client",
        "reduced",
        ("resource_links",),
        _client(R1, R2),
        "The client knows no links: it gets text with the URI, which it can read.",
        LINKS,
        C3,
    ),
    Reason(
        "structured-client",
        "reduced",
        ("structured",),
        _client(R1, R2),
        "The client knows no structured results: it has the text beside them.",
        STRUCTURED,
        C3,
    ),
    Reason(
        "any-value-client",
        "reduced",
        ("structured_list",),
        _client(*LEGACY),
        "The client knows objects only: it has the text beside them.",
        ANY_VALUE,
        C5,
    ),
    Reason(
        "url-required-client",
        "reduced",
        ("url_required",),
        lambda client, server: client in (R1, R2, R3) and server == R4,
        "The client cannot be sent to a URL: the result is a failure whose text has the link, for the user to follow.",
        URL,
        C4,
    ),
    Reason(
        "url-required-old-client",
        "absent",
        ("url_required",),
        lambda client, server: client in (R1, R2, R3) and server == MODERN,
        "The client cannot be sent to a URL, and the server is told so.",
        URL,
        C4,
    ),
)


def reason_for(feature: str, client: str, server: str) -> Reason | None:
    """The reason that a cell is not a plain one; what the server lacks comes first, absence before a poorer form."""
    found = [each for each in REASONS if feature in each.features and each.where(client, server)]
    return min(found, key=lambda each: each.kind, default=None)
