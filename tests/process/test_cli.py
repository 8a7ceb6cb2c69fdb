"""The commands that run once: what goes to stdout, what to stderr, and the exit codes."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.children import gone
from tests.process.cli import DEADLINE_SECONDS, SERVER, Home, read_until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# -- what needs no server
def test_help_and_version_go_to_stdout(home: Home) -> None:
    for words, start in ((["--help"], "polyplex "), (["--version"], "polyplex "), (["call", "--help"], "Usage: ")):
        result = home.run(*words)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith(start)


def test_nothing_said_is_answered_with_the_help_and_is_no_success(home: Home) -> None:
    result = home.run()
    assert (result.returncode, result.stdout) == (2, home.run("--help").stdout)


def test_a_mistake_is_one_sentence_on_stderr(home: Home) -> None:
    result = home.run("serv")
    expected = "error    unknown command 'serv'; did you mean serve?\n         polyplex --help says more\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", expected)


@pytest.mark.parametrize("command", ["serve", "tools", "doctor", "config check"])
def test_a_broken_configuration_is_named_with_its_line(home: Home, command: str) -> None:
    (home.folder / "polyplex.json").write_text('{"mcpServers": {\n"a": {"url": 3}}}', encoding="utf-8")
    result = home.run(*command.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert "polyplex.json:2: mcpServers.a.url: expected a string" in result.stderr
    assert "Traceback" not in result.stderr


def test_verbose_shows_where_an_error_comes_from(home: Home) -> None:
    assert "Traceback" in home.run("tools", "-v", "--config", "none.json").stderr


def test_config_check_names_servers_warnings_and_every_unset_variable(home: Home) -> None:
    servers = {"a": {"url": "http://x/mcp?key=hidden"}, "b": {"command": "x", "args": ["${NO_SUCH_A}", "${NO_SUCH_B}"]}}
    home.configure(servers, odd=1)
    result = home.run("config", "check")
    assert result.returncode == 2
    assert result.stdout == "server   a  http://x/mcp\nserver   b  not complete, see below\n"
    assert "polyplex.odd: unknown key" in result.stderr
    assert "NO_SUCH_A" in result.stderr
    assert "NO_SUCH_B" in result.stderr
    assert "hidden" not in result.stdout + result.stderr


# -- tools
def test_tools_prints_one_a_line_and_reports_a_server_that_failed(home: Home) -> None:
    home.configure({"one": home.good, "two": home.dying})
    result = home.run("tools")
    assert result.returncode == 0
    assert result.stdout == (
        "one__echo  Says it again.\none__fail  Fails\none__ask   Asks for a name\none__hang  Never answers\n"
    )
    assert result.stderr.startswith("failed   two")
    assert "TEST_KEY is not set" in result.stderr


def test_a_deep_schema_takes_no_sibling_with_it(home: Home) -> None:
    script = home.folder / "deep.py"
    lists = 'result(request, {"tools": TOOLS})'
    deep = """
        schema = '{"properties":{"a":' * 900 + "{}" + "}}" * 900
        tools = '[{"name":"deep","inputSchema":%s},{"name":"t","inputSchema":{}}]' % schema
        print('{"jsonrpc":"2.0","id":%d,"result":{"tools":%s}}' % (request["id"], tools), flush=True)"""
    script.write_text(SERVER.replace(lists, deep), encoding="utf-8")
    home.configure({"one": {"command": sys.executable, "args": ["-S", str(script)]}})
    assert [line.strip() for line in home.run("tools").stdout.splitlines()] == ["one__t"]


def test_tools_searches_and_prints_json(home: Home) -> None:
    home.configure({"one": home.good})
    found = json.loads(home.run("tools", "asks", "name", "--json").stdout)
    assert found[0]["name"] == "one__ask"
    assert found[:1] == json.loads(home.run("tools", "asks", "name", "--json", "-k", "1").stdout)
    assert len(json.loads(home.run("tools", "--json", "-k", "2").stdout)) == 2
    nothing = home.run("tools", "zebra")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "no tool fits 'zebra'" in nothing.stderr


def test_tools_says_where_it_looked_when_there_is_no_configuration(home: Home) -> None:
    result = home.run("tools")
    assert (result.returncode, result.stdout) == (0, "")
    assert [line.strip() for line in result.stderr.splitlines()] == [
        "config   none found; looked for",
        "./polyplex.json",
        "./.mcp.json",
        "./.vscode/mcp.json",
        "./.config/polyplex/config.json",
    ]


def test_tools_fails_when_no_server_could_be_started(home: Home) -> None:
    home.configure({"two": home.dying})
    assert home.run("tools").returncode == 1


def test_a_reader_that_stops_reading_is_no_error(home: Home) -> None:
    home.configure({"one": home.good})
    with home.running("tools") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(DEADLINE_SECONDS) == 141
        assert process.stderr.read() == ""


# -- call
def test_call_prints_the_result_and_nothing_else_to_stdout(home: Home) -> None:
    home.configure({"one": home.good, "two": home.dying})
    result = home.run("call", "one__echo", '{"a": "\\u00fc"}')
    assert (result.returncode, result.stdout) == (0, '{"a": "\\u00fc"}\n')
    assert result.stderr == "progress 1 of 2\n"
    assert len(home.children()) == 1


def test_call_reads_arguments_from_stdin_and_prints_raw_results(home: Home) -> None:
    home.configure({"one": home.good})
    result = home.run("call", "one__echo", "-", "--json", given='{"b": 1}')
    assert json.loads(result.stdout)["content"] == [{"type": "text", "text": '{"b": 1}'}]


def test_a_tool_that_failed_is_an_exit_code_and_its_words_go_to_stderr(home: Home) -> None:
    home.configure({"one": home.good})
    result = home.run("call", "one__fail", '{"why": 1}')
    assert (result.returncode, result.stdout) == (1, "")
    assert 'failed   {"why": 1}' in result.stderr
    raw = home.run("call", "one__fail", "--json")
    assert (raw.returncode, json.loads(raw.stdout)["isError"]) == (1, True)


def test_a_question_is_declined_where_nobody_can_be_asked(home: Home) -> None:
    home.configure({"one": home.good})
    result = home.run("call", "one__ask")
    assert (result.returncode, result.stdout) == (0, "decline\n")
    assert "one__ask asks: Who?" in result.stderr


def test_a_question_is_asked_in_a_terminal(home: Home) -> None:
    home.configure({"one": home.good})
    ours, theirs = pty.openpty()
    environment = home.environment() | {"TERM": "xterm"}
    command = [sys.executable, "-m", "polyplex", "call", "one__ask"]
    try:
        with subprocess.Popen(
            command, cwd=home.folder, env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
        ) as process:
            shown = b""
            while b"name (optional): " not in shown:
                shown += os.read(ours, 4096)
            os.write(ours, b"Ada\n")
            stdout, _ = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, stdout) == (0, b"accept\n")
    assert b"one__ask asks: Who?" in shown


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["one__echp"], 2, "there is no tool one__echp; did you mean one__echo?"),
        (["two__x"], 1, "its server did not start"),
        (["three"], 1, "there is no tool three, unless two has it; polyplex tools lists them"),
        (["one__echo", "[]"], 2, "no JSON object"),
        (["one__broken"], 2, "there is no tool one__broken"),
    ],
)
def test_a_call_that_cannot_be_made(home: Home, words: list[str], code: int, said: str) -> None:
    home.configure({"one": home.good, "two": home.dying})
    result = home.run("call", *words)
    assert (result.returncode, result.stdout) == (code, "")
    assert said in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
async def test_an_interrupted_call_is_quiet_and_leaves_no_child(home: Home, number: int, code: int) -> None:
    home.configure({"one": home.good})
    with home.running("call", "one__hang") as process:
        assert read_until(process, "hanging") == "progress 1  hanging\n"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, stdout, stderr) == (code, "", "")
    await gone(*home.children())


# -- doctor
def test_doctor_says_what_works_and_what_to_do_about_the_rest(home: Home) -> None:
    servers = {"one": home.good, "two": home.dying, "three": {"command": "npxx"}, "four": {"url": "${NO_SUCH_A}"}}
    home.configure(servers | {"five": {"command": "x", "disabled": True}})
    result = home.run("doctor")
    assert result.returncode == 1
    for part in (
        "ok       one    stdio, 2025-06-18 (legacy)",
        "         offers   4 tools\n",
        "         aside    broken: its inputSchema has type",
        "failed   two    stdio, ",
        "         stderr   Error: TEST_KEY is not set\n",
        '         do       give it the variable: "env": {"TEST_KEY": "${TEST_KEY}"}',
        '         why      the command "npxx" was not found in PATH\n',
        "         why      mcpServers.four.url: the environment variable NO_SUCH_A is not set\n",
        "off      five   stdio, x\n",
        "\n5 servers: 1 ok, 3 failed, 1 off\n",
    ):
        assert part in result.stdout


def test_doctor_has_nothing_to_say_about_health(home: Home) -> None:
    home.configure({"one": home.good})
    result = home.run("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("\n1 server: 1 ok\n")


def test_doctor_prints_json(home: Home) -> None:
    home.configure({"one": home.good, "two": home.dying})
    result = home.run("doctor", "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["ok"]) == (1, False)
    states = {server["name"]: server for server in report["servers"]}
    assert states["one"]["offers"] == {"tools": 4, "resources": 0, "resourceTemplates": 0, "prompts": 0}
    assert states["one"]["setAside"][0]["name"] == "broken"
    assert (states["two"]["reason"], states["two"]["stderr"]) == ("exited with code 1", ["Error: TEST_KEY is not set"])


def test_doctor_tries_the_payload_store_and_the_check_reads_its_address(home: Home) -> None:
    in_the_way = home.folder / "file"
    in_the_way.write_text("", encoding="utf-8")
    home.configure({"one": home.good}, payloads={"store": f"file:{in_the_way}/payloads"})
    result = home.run("doctor")
    assert result.returncode == 1
    assert "failed   polyplex.payloads.store: " in result.stdout
    assert "; large results stay whole until then\n" in result.stdout
    assert json.loads(home.run("doctor", "--json").stdout)["lacks"][0]["key"] == "polyplex.payloads.store"
    home.configure({"one": home.good}, payloads={"store": "/payloads"})
    result = home.run("config", "check")
    assert result.returncode == 2
    assert "polyplex.payloads.store: '/payloads' is no payload store; expected file:PATH" in result.stderr


def test_doctor_names_the_servers_that_claim_one_name(home: Home) -> None:
    home.configure({"one": home.good, "two": home.good}, naming="bare")
    result = home.run("doctor")
    assert result.returncode == 1
    assert "failed   the tool echo is offered by one and two, so by neither\n" in result.stdout


# -- tools in other words, and tools of polyplex itself
def test_a_renamed_tool_is_searched_by_its_own_words_and_doctor_names_what_fits_nothing(home: Home) -> None:
    tools = {"echo": {"name": "parrot", "description": "Repeats your zebra."}, "gone": {"title": "x"}}
    file = home.configure({"one": home.good})
    options = {"servers": {"one": {"tools": tools}}}
    file.write_text(json.dumps({"mcpServers": {"one": home.good}, "polyplex": options}), encoding="utf-8")
    found = home.run("tools", "zebra")
    assert " ".join(found.stdout.splitlines()[0].split()) == "one__parrot Repeats your zebra."
    assert home.run("call", "one__parrot", '{"a": 1}').stdout.strip() == '{"a": 1}'
    doctor = home.run("doctor")
    assert "there is no tool 'gone'; see polyplex.servers in the configuration" in doctor.stdout
    (server,) = json.loads(home.run("doctor", "--json").stdout)["servers"]
    assert server["unmatched"] == ["there is no tool 'gone'"]


def test_the_command_line_lists_all_tools_and_calls_those_of_polyplex(home: Home) -> None:
    home.configure({"one": home.good}, expose="search")
    assert len(home.run("tools").stdout.splitlines()) == 4
    found = home.run("call", "polyplex__find_tools", '{"query": "ask for a name"}')
    assert "one__ask() – Asks for a name" in found.stdout


def test_a_server_named_like_polyplex_is_refused_unless_it_is_polyplex(home: Home) -> None:
    home.configure({"polyplex": home.good})
    refused = home.run("tools")
    assert (refused.returncode, "is the server of polyplex's own tools; choose another name" in refused.stderr) == (
        2,
        True,
    )
    home.configure({"polyplex": {"command": "uvx", "args": ["polyplex@latest", "serve", "--stdio"]}, "one": home.good})
    served = home.run("tools")
    assert (served.returncode, len(served.stdout.splitlines())) == (0, 4)
    assert "left out: it is polyplex; to mount another polyplex, give it another name" in served.stderr
