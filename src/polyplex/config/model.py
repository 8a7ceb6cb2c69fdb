"""The shape of the configuration: what a file may say (`ConfigFile`) and what a loaded one is (`Config`).

Descriptions and limits live in the annotations; the JSON Schema and docs/reference/config.md are made from them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Kind = Literal["stdio", "http", "sse", "auto-http"]
Trust = Literal["trusted", "reviewed", "untrusted"]
Isolation = Literal["auto", "shared", "caller", "session"]
Expose = Literal["all", "search", "auto"]
ResultMode = Literal["bounded", "raw"]
Summary = Literal["none", "extractive", "client"]

MAX_SERVER_NAME = 128
# The server that polyplex's own tools are of.
RESERVED_SERVER = "polyplex"
YEAR_SECONDS = 31_536_000

Seconds = Annotated[float, Meta(gt=0, le=YEAR_SECONDS)]
SecondsOrZero = Annotated[float, Meta(ge=0, le=YEAR_SECONDS)]
Count = Annotated[int, Meta(ge=1)]


class ServerEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """One member of `mcpServers`, as in the configuration files of MCP clients."""

    command: Annotated[str | None, Meta(description="Program of a stdio server; `~/` expands.")] = None
    args: Annotated[tuple[str, ...] | None, Meta(description="Arguments of the program.")] = None
    env: Annotated[
        dict[str, str] | None,
        Meta(description="Environment variables of the program, besides the safe ones."),
    ] = None
    env_file: Annotated[
        str | None, Meta(description="File of `NAME=value` lines for the environment; `env` wins over it.")
    ] = None
    cwd: Annotated[
        str | None, Meta(description="Working folder of the program; relative to the folder of the configuration file.")
    ] = None
    url: Annotated[str | None, Meta(description="Address of an HTTP server.")] = None
    server_url: Annotated[str | None, Meta(description="The same as `url`, as Windsurf writes it.")] = None
    http_url: Annotated[str | None, Meta(description="As `url` with `type` `http`, as Gemini CLI writes it.")] = None
    headers: Annotated[dict[str, str] | None, Meta(description="Headers of every HTTP request to the server.")] = None
    type: Annotated[
        str | None,
        Meta(
            description="`stdio` (or `local`), `http` (or `streamable-http`, `streamableHttp`, `streamable_http`), "
            "`sse`, or `remote` (found out when connecting). Needed only where a URL's kind must be fixed."
        ),
    ] = None
    transport: Annotated[str | None, Meta(description="The same as `type`.")] = None
    disabled: Annotated[bool | None, Meta(description="`true` keeps the entry but never starts the server.")] = None


class ToolOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """What polyplex changes of one tool: `polyplex.servers.NAME.tools.TOOL`, by the server's own name of the tool."""

    name: Annotated[str | None, Meta(description="Another name for the tool; public names are made from it.")] = None
    title: Annotated[str | None, Meta(description="Another title.")] = None
    description: Annotated[str | None, Meta(description="Another description.")] = None
    parameters: Annotated[
        dict[str, str], Meta(description="Other descriptions of parameters, by name; `a.b` for a nested one.")
    ] = {}
    pinned: Annotated[bool, Meta(description="List the tool even where only search tools are listed.")] = False
    results: Annotated[
        ResultMode | None, Meta(description="`raw` leaves results of the tool as they are; `bounded` bounds them.")
    ] = None
    max_tokens: Annotated[Count | None, Meta(description="As `results.maxTokens`, for this tool.")] = None
    summary: Annotated[Summary | None, Meta(description="As `results.summary`, for this tool.")] = None
    resolve: Annotated[
        dict[str, Literal["content", "url"]],
        Meta(
            description="Arguments in which a payload URI is replaced by the payload's content, or by a URL that is "
            "valid for a while; by name, `a.b` for a nested one, `*` for any."
        ),
    ] = {}


class ServerOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """What polyplex adds to one server: `polyplex.servers.NAME`."""

    trust: Annotated[
        Trust, Meta(description="How far the server's content is trusted; decides whether it is marked as untrusted.")
    ] = "untrusted"
    isolation: Annotated[
        Isolation,
        Meta(description="Who shares a session with the server: all, each caller, or each client session."),
    ] = "auto"
    enabled: Annotated[bool, Meta(description="`false` keeps the server but never starts it.")] = True
    timeout_seconds: Annotated[Seconds, Meta(description="Time limit of a call; progress starts it anew.")] = 60.0
    max_timeout_seconds: Annotated[
        Seconds, Meta(description="Hard limit of a call that progress keeps alive; at least `timeoutSeconds`.")
    ] = 3600.0
    connect_timeout_seconds: Annotated[Seconds, Meta(description="How long start and handshake may take.")] = 30.0
    idle_seconds: Annotated[
        Seconds | None, Meta(description="Stop the server after this time without use; `null` for never.")
    ] = None
    lazy: Annotated[bool, Meta(description="Start the server on first use instead of at once.")] = False
    allow: Annotated[tuple[str, ...], Meta(description="Patterns of the tools to offer (`*` and `?`).")] = ("*",)
    deny: Annotated[tuple[str, ...], Meta(description="Patterns of tools not to offer; wins over `allow`.")] = ()
    inherit_env: Annotated[
        tuple[str, ...],
        Meta(description='Own variables that the child gets besides the safe ones; `["*"]` for all.'),
    ] = ()
    ca_file: Annotated[
        str | None, Meta(description="PEM file of the certificate authorities to trust for this server.")
    ] = None
    tools: Annotated[
        dict[str, ToolOptions], Meta(description="Options of single tools, by the server's own name.")
    ] = {}
    results: Annotated[
        ResultMode | None, Meta(description="`raw` leaves the server's results as they are; `bounded` bounds them.")
    ] = None


class ClientOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is otherwise for some clients: `polyplex.clients.NAME`, by the name that a client gives itself."""

    expose: Annotated[Expose | None, Meta(description="As `expose`, for this client.")] = None
    results: Annotated[
        ResultMode | None, Meta(description="`raw` for a client that is a program and reads results whole.")
    ] = None


class SearchOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """`polyplex.search`: how tools are found."""

    embedder: Annotated[
        Literal["static", "minilm", "none"],
        Meta(
            description="`static` for the word vectors that polyplex carries, `minilm` for the embedder of the extra "
            "`polyplex[minilm]`, `none` for words alone."
        ),
    ] = "static"
    lexical_weight: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Share of the words in the score; the rest belongs to the vectors."),
    ] = None
    budget_tokens: Annotated[Count, Meta(description="Tokens that the answer to a search may cost.")] = 2000


class PayloadOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """`polyplex.payloads`: passing large results by reference."""

    store: Annotated[
        str | None,
        Meta(
            description="Where large results go: `file:PATH`, `s3://BUCKET/PREFIX`, `gs://...` or `az://...`; without "
            "it `payloads` in the state folder."
        ),
    ] = None
    store_options: Annotated[
        dict[str, str], Meta(description="Settings of an object store, such as `endpoint` and `access_key_id`.")
    ] = {}
    inline_limit_bytes: Annotated[
        Count | None, Meta(description="Larger content becomes a reference; `null` for none.")
    ] = 65536
    ttl_seconds: Annotated[
        Seconds | None, Meta(description="How long a stored result is kept; `null` for as long as there is room.")
    ] = 86400.0
    max_bytes: Annotated[Count, Meta(description="Bytes kept in all; beyond, the oldest make room.")] = 8 * 1024**3
    caller_max_bytes: Annotated[
        Count | None, Meta(description="Bytes kept for one caller; beyond, its oldest make room.")
    ] = None
    uri: Annotated[
        Literal["polyplex", "store"],
        Meta(description="`store` hands out the bucket's own URI (`s3://...`), where the store has one."),
    ] = "polyplex"

    def __repr__(self) -> str:
        return f"PayloadOptions(store={self.store!r}, store_options=<{len(self.store_options)} hidden>, ...)"


class ResultOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """`polyplex.results`: bounding what reaches the model."""

    max_tokens: Annotated[
        Count | None, Meta(description="Longer results are cut, and the rest is kept to be read on; `null` for none.")
    ] = 20000
    mode: Annotated[ResultMode, Meta(description="`raw` leaves all results as they are.")] = "bounded"
    summary: Annotated[
        Summary,
        Meta(
            description="What stands for the middle of a long text: nothing, its headings, key lines and columns "
            "(`extractive`), or what the client's own model makes of it (`client`, else extractive)."
        ),
    ] = "none"


class ParkedOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """`polyplex.parked`: questions of legacy servers to modern clients."""

    ttl_seconds: Annotated[
        Seconds, Meta(description="How long a legacy server's question waits for a modern client's retry.")
    ] = 600.0
    keys: Annotated[
        tuple[Annotated[str, Meta(min_length=16)], ...],
        Meta(
            description="Secrets of at least 16 characters that seal what a client brings back; the first seals, all "
            "open. Replicas need the same ones. Without any, keys are made and kept in the state folder."
        ),
    ] = ()

    def __repr__(self) -> str:
        return f"ParkedOptions(ttl_seconds={self.ttl_seconds!r}, keys=<{len(self.keys)} hidden>)"


class EventLogOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """`polyplex.events`: what is kept of event streams, for clients that take a broken one up again."""

    max_bytes: Annotated[
        Count, Meta(description="Bytes kept for all sessions; one session gets an eighth of them.")
    ] = 256 * 1024 * 1024
    memory_bytes: Annotated[
        Count, Meta(description="As many of these bytes stay in memory; more go to the state database.")
    ] = 32 * 1024 * 1024
    max_age_seconds: Annotated[
        Seconds, Meta(description="How long an event, and the result of a call, waits for its client.")
    ] = 600.0


class GuardOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """`polyplex.guard`: protection from what servers say."""

    pins: Annotated[
        Literal["tofu", "strict", "off"], Meta(description="Pin tool definitions; a changed one is quarantined.")
    ] = "off"


class GatewayOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """The `polyplex` object of a configuration file."""

    naming: Annotated[
        Literal["prefix", "bare"],
        Meta(description="`prefix` for `server__tool`; `bare` for names as they are, where a collision is an error."),
    ] = "prefix"
    expose: Annotated[
        Expose,
        Meta(description="All tools, search tools only, or all while their schemas fit `toolBudgetTokens`."),
    ] = "auto"
    tool_budget_tokens: Annotated[Count, Meta(description="Tokens that the schemas of all tools may cost.")] = 8000
    pinned_tools: Annotated[
        tuple[str, ...],
        Meta(description="Patterns of public names that are listed even where only search tools are."),
    ] = ()
    as_tools: Annotated[
        tuple[Literal["resources", "prompts"], ...],
        Meta(description="What is also offered as constant tools, for clients that know nothing but tools."),
    ] = ()
    search: Annotated[SearchOptions, Meta(description="How tools are found.")] = SearchOptions()
    clients: Annotated[
        dict[str, ClientOptions],
        Meta(description="Options of single clients, by patterns (`*` and `?`) of the name that they give themselves."),
    ] = {}
    builtins: Annotated[tuple[str, ...], Meta(description="Built-in servers to mount.")] = ()
    servers: Annotated[
        dict[str, ServerOptions], Meta(description="Options of single servers, by their name in `mcpServers`.")
    ] = {}
    payloads: Annotated[PayloadOptions, Meta(description="Passing large results by reference.")] = PayloadOptions()
    results: Annotated[ResultOptions, Meta(description="Bounding what reaches the model.")] = ResultOptions()
    parked: Annotated[ParkedOptions, Meta(description="Questions of legacy servers.")] = ParkedOptions()
    events: Annotated[EventLogOptions, Meta(description="What is kept of event streams that break.")] = (
        EventLogOptions()
    )
    guard: Annotated[GuardOptions, Meta(description="Protection from what servers say.")] = GuardOptions()
    policy: Annotated[str | None, Meta(description="Policy file: who may call which tool with what.")] = None
    auth: Annotated[dict[str, Any], Meta(description="Issuers, audiences and static tokens of callers.")] = {}
    state: Annotated[
        str | None,
        Meta(description="`sqlite:PATH` or `redis://...`; without it `state.db` in the user's state folder."),
    ] = None
    first_list_wait_seconds: Annotated[
        SecondsOrZero, Meta(description="How long a first list waits for servers never seen before.")
    ] = 2.0
    allowed_hosts: Annotated[
        tuple[str, ...], Meta(description="`Host` values accepted besides the loopback ones; `*` for any.")
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="`Origin` values accepted besides the loopback ones; `*` for any.")
    ] = ()
    max_body_bytes: Annotated[Count, Meta(description="Largest request body of a client.")] = 16 * 1024 * 1024
    session_idle_seconds: Annotated[Seconds, Meta(description="Unused client sessions end after this time.")] = 1800.0

    def __repr__(self) -> str:
        return f"GatewayOptions(naming={self.naming!r}, expose={self.expose!r}, servers={list(self.servers)!r}, ...)"


class ConfigFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A whole configuration file. Other keys are left to the clients that they belong to."""

    schema: Annotated[str | None, Meta(description="Address of this schema, for editors.")] = msgspec.field(
        default=None, name="$schema"
    )
    mcp_servers: Annotated[dict[str, ServerEntry], Meta(description="The servers, by name.")] = {}
    servers: Annotated[dict[str, ServerEntry], Meta(description="The servers, as in VS Code's `mcp.json`.")] = {}
    inputs: Annotated[list[Any] | None, Meta(description="VS Code's prompts for values; not used by polyplex.")] = None
    polyplex: Annotated[GatewayOptions, Meta(description="Options of polyplex itself.")] = GatewayOptions()


class ServerConfig(Struct, frozen=True, kw_only=True):
    """One server to connect to. Paths are absolute, variables expanded; `repr()` hides what may be secret."""

    name: str
    kind: Kind
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    options: ServerOptions = ServerOptions()

    @property
    def enabled(self) -> bool:
        """Whether the server is to be started at all."""
        return self.options.enabled

    def __repr__(self) -> str:
        address = (
            f"command={self.command!r}, args=<{len(self.args)} hidden>, env={_masked(self.env)!r}, cwd={self.cwd!r}"
            if self.kind == "stdio"
            else f"url={_without_secrets(self.url)!r}, headers={_masked(self.headers)!r}"
        )
        return f"ServerConfig(name={self.name!r}, kind={self.kind!r}, {address}, options={self.options!r})"


class Config(Struct, frozen=True, kw_only=True):
    """A loaded configuration: `servers` by name in the order of the file, disabled ones included.

    `files` were read, `searched` were looked for; `warnings` are finished texts, `file:line: key: what`.
    """

    servers: dict[str, ServerConfig] = {}
    options: GatewayOptions = GatewayOptions()
    files: tuple[Path, ...] = ()
    searched: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def _masked(values: Mapping[str, str]) -> dict[str, str]:
    return dict.fromkeys(values, "***")


def _without_secrets(url: str) -> str:
    """The address without user, password and query."""
    scheme, separator, rest = url.partition("://")
    address = rest.partition("#")[0].partition("?")[0]
    authority, slash, path = address.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
