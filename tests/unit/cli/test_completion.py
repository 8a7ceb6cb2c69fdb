"""Completion scripts: each shell accepts its own, and bash completes with it."""

import shutil
import subprocess

import pytest

from polyplex.cli.commands import COMMANDS, EVERYWHERE, SHELLS
from polyplex.cli.completion import script


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_and_option(shell: str) -> None:
    text = script(shell)
    for command in COMMANDS:
        assert all(word in text for word in command.name.split())
        for option in (*command.options, *EVERYWHERE):
            assert option.key in text


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_its_script(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    result = subprocess.run([program, "-n"], input=script(shell), capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["polyplex", "t"], "tools"),
        (["polyplex", "serve", "--st"], "--stdio"),
        (["polyplex", "serve", "--log-level", "w"], "warning"),
        (["polyplex", "config", "c"], "check"),
        (["polyplex", "completion", "f"], "fish"),
    ],
)
def test_bash_completes(words: list[str], expected: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    ask = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _polyplex; echo "${{COMPREPLY[*]}}"'
    command = [bash, "--norc", "-c", f"{script('bash')}\n{ask}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (result.stdout.strip(), result.stderr) == (expected, "")
