"""The commands as data: what they take and what they are for. Parser, help and shell completion are made from it."""

from dataclasses import dataclass
from typing import Final, Literal

DEFAULT_ADDRESS: Final = "127.0.0.1:7332"
SHELLS: Final = ("bash", "zsh", "fish")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
FAIL_LEVELS: Final = ("error", "warning", "note", "never")
TOKENIZERS: Final = ("o200k_base", "cl100k_base", "estimate")


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its names, the long one last. `value` names what follows it, "" for a flag."""

    names: tuple[str, ...]
    summary: str
    value: str = ""
    choices: tuple[str, ...] = ()
    is_file: bool = False

    @property
    def key(self) -> str:
        """The name that the parser stores it under."""
        return self.names[-1].lstrip("-")


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument."""

    name: str
    summary: str
    required: bool = True
    repeats: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A command line to try, and what it does."""

    line: str
    effect: str


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `name` may be two words."""

    name: Literal["serve", "tools", "call", "lint", "cost", "doctor", "config check", "completion"]
    summary: str
    text: tuple[str, ...]
    options: tuple[Option, ...] = ()
    arguments: tuple[Argument, ...] = ()
    examples: tuple[Example, ...] = ()


HELP: Final = Option(("-h", "--help"), "show this help")
VERSION: Final = Option(("-V", "--version"), "show the version")
VERBOSE: Final = Option(("-v", "--verbose"), "log everything to stderr, and show tracebacks")
CONFIG: Final = Option(("--config",), "the configuration to use, instead of looking for one", "FILE", is_file=True)
JSON: Final = Option(("--json",), "print JSON, for programs")

SERVE: Final = Command(
    "serve",
    "offer all configured servers at one address, or on stdin and stdout",
    (
        "Starts every server of the configuration and offers their tools, resources and prompts as one MCP server.",
        "Clients are served at once: what is ready is there, the rest joins when it is. Ctrl-C or SIGTERM lets calls "
        "under way finish and stops all servers; a second one ends at once.",
    ),
    (
        CONFIG,
        Option(
            ("--http",), f"the address to listen at (default {DEFAULT_ADDRESS}; port 0 picks a free one)", "HOST:PORT"
        ),
        Option(("--stdio",), "serve the one client that started this process, on stdin and stdout"),
        Option(("--log-level",), "how much to log (default info)", "LEVEL", choices=LOG_LEVELS),
    ),
    (),
    (
        Example("polyplex serve", f"at http://{DEFAULT_ADDRESS}/mcp"),
        Example("polyplex serve --http 127.0.0.1:8000", "at another port"),
        Example("polyplex serve --stdio --config ~/mcp.json", "as a client's child process"),
    ),
)
TOOLS: Final = Command(
    "tools",
    "list the tools of all servers, or search them",
    ("Starts every server, and prints one tool a line: its name, and the first sentence of what it does.",),
    (
        CONFIG,
        Option(("-k",), "print at most N tools (default 10 for a search, all for a list)", "N"),
        Option(("--json",), "print the whole entries as a JSON array, best first"),
    ),
    (Argument("QUERY", "words to search for in names and descriptions", required=False, repeats=True),),
    (
        Example("polyplex tools", "all tools"),
        Example("polyplex tools read file -k 3", "the three that fit best"),
        Example("polyplex tools --json | jq -r '.[].name'", "only the names"),
    ),
)
CALL: Final = Command(
    "call",
    "call one tool and print its result",
    (
        "Starts the server that has the tool, calls it, and prints the result to stdout; progress and errors go to "
        "stderr. The exit code is 1 when the tool failed.",
        "When a tool asks for input, it is asked for in the terminal; where there is none, the tool is told that the "
        "user declined. Servers that ask for roots get the current folder.",
    ),
    (CONFIG, Option(("--json",), "print the whole result as JSON, also when the tool failed")),
    (
        Argument("NAME", "the tool's name, as `polyplex tools` prints it"),
        Argument("ARGUMENTS", "its arguments as a JSON object, or - to read them from stdin", required=False),
    ),
    (
        Example("""polyplex call time__get_current_time '{"timezone": "Europe/Berlin"}'""", ""),
        Example("polyplex call git__git_log - < arguments.json", ""),
    ),
)
LINT: Final = Command(
    "lint",
    "judge what servers offer: words, schemas, annotations, tools that are confused",
    (
        "Starts every server, and prints what is wrong with its tools, resources and prompts, worst first: why it "
        "matters, what to do, and better words to paste, into the configuration (paste) or the server (author). The "
        "words are made of what is there, so read them before you use them.",
        "Which tools are confused is measured: queries made of each tool's own words, and given ones, that find "
        "another tool first.",
    ),
    (
        CONFIG,
        Option(
            ("--queries",),
            'real queries to measure with too, JSON lines of "text" and "relevant", names of tools',
            "FILE",
            is_file=True,
        ),
        Option(("-k",), "print at most N findings", "N"),
        Option(("--json",), "print all findings as JSON, for programs"),
        Option(("--overrides",), "print only the proposed words, as a fragment of the configuration"),
        Option(
            ("--fail-on",),
            "exit with 1 for a finding as bad as this or worse (default error)",
            "LEVEL",
            choices=FAIL_LEVELS,
        ),
    ),
    (Argument("SERVER", "only findings about these servers", required=False, repeats=True),),
    (
        Example("polyplex lint", "all servers"),
        Example("polyplex lint files -k 10", "the ten worst of one server"),
        Example("polyplex lint --overrides > words.json", "the words, to be merged into a configuration"),
        Example("polyplex lint --fail-on warning", "in CI"),
    ),
)
COST: Final = Command(
    "cost",
    "show what tools and results cost in tokens",
    (
        "Starts every server, and counts the tokens of each tool as a model gets it (name, description, input schema), "
        "of instructions, and of what results have cost since they were counted.",
        "Says what `expose: auto` lists, and what it saves.",
    ),
    (
        CONFIG,
        Option(("-k",), "print at most N tools of each server (default 5)", "N"),
        JSON,
        Option(("--tokenizer",), "what to count with (default the best that is installed)", "NAME", choices=TOKENIZERS),
    ),
    (),
    (
        Example("polyplex cost", "a table"),
        Example("polyplex cost --json | jq '.servers[] | {name, tokens}'", "for programs"),
    ),
)
DOCTOR: Final = Command(
    "doctor",
    "start every server; say what works, what does not, and what to do",
    (
        "Starts each configured server once, and reports its transport, protocol revision, start-up time and what it "
        "offers; for one that fails, why, the last lines of its stderr, and what to do. The exit code is 1 when "
        "something failed.",
    ),
    (CONFIG, JSON),
    (),
    (
        Example("polyplex doctor", ""),
        Example("polyplex doctor --json | jq '.servers[] | select(.state == \"failed\")'", ""),
    ),
)
CONFIG_CHECK: Final = Command(
    "config check",
    "check the configuration without starting anything",
    ("Names the file that is used, every warning and error in it with line and key, and the servers it holds.",),
    (CONFIG,),
)
COMPLETION: Final = Command(
    "completion",
    "print a completion script for a shell",
    ("Prints the script to stdout.",),
    (),
    (Argument("SHELL", "bash, zsh or fish", choices=SHELLS),),
    (
        Example('eval "$(polyplex completion bash)"', "in ~/.bashrc"),
        Example("source <(polyplex completion zsh)", "in ~/.zshrc, after compinit"),
        Example("polyplex completion fish > ~/.config/fish/completions/polyplex.fish", ""),
    ),
)
COMMANDS: Final = (SERVE, TOOLS, CALL, LINT, COST, DOCTOR, CONFIG_CHECK, COMPLETION)
EVERYWHERE: Final = (VERBOSE, HELP)
