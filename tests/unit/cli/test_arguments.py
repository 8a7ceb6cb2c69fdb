"""Command lines: what is understood, and what is said about the rest."""

import pytest

from polyplex.cli.arguments import UsageError, parse, suggestion
from polyplex.cli.commands import COMMANDS, EVERYWHERE


def test_options_may_stand_anywhere_after_the_command() -> None:
    request = parse(["call", "a__b", "--json", '{"x": 1}', "--config", "c.json"])
    assert request.command is not None
    assert request.command.name == "call"
    assert request.arguments == ["a__b", '{"x": 1}']
    assert request.options == {"json": "", "config": "c.json"}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["tools", "-k", "3"], {"k": "3"}),
        (["tools", "-k3"], {"k": "3"}),
        (["tools", "-k=3"], {"k": "3"}),
        (["tools", "--config=a=b.json"], {"config": "a=b.json"}),
        (["-v", "tools"], {"verbose": ""}),
        (["--config", "c.json", "tools"], {"config": "c.json"}),
    ],
)
def test_every_usual_way_to_write_an_option(words: list[str], options: dict[str, str]) -> None:
    request = parse(words)
    assert request.command is not None
    assert request.options == options


def test_after_two_dashes_everything_is_an_argument() -> None:
    assert parse(["tools", "--", "--json", "-k"]).arguments == ["--json", "-k"]


def test_a_single_dash_is_an_argument() -> None:
    assert parse(["call", "a", "-"]).arguments == ["a", "-"]


def test_a_command_may_be_two_words() -> None:
    request = parse(["config", "check", "--config", "x"])
    assert request.command is not None
    assert request.command.name == "config check"


@pytest.mark.parametrize("words", [["call", "--help"], ["help", "call"], ["call", "-h", "a", "b", "c"]])
def test_help_wins_over_what_is_missing_or_too_much(words: list[str]) -> None:
    request = parse(words)
    assert request.command is not None
    assert request.command.name == "call"
    assert request.has("help")


@pytest.mark.parametrize("words", [[], ["--help"], ["help"], ["--version"], ["-V"]])
def test_without_a_command_it_is_about_polyplex_itself(words: list[str]) -> None:
    assert parse(words).command is None


@pytest.mark.parametrize(
    ("words", "message", "command"),
    [
        (["serv"], "unknown command 'serv'; did you mean serve?", None),
        (["config"], "polyplex config needs one more word: polyplex config check", None),
        (["serve", "--htp", "x"], "unknown option --htp; did you mean --http?", "serve"),
        (["serve", "--config"], "--config needs a value: --config FILE", "serve"),
        (["serve", "--config", "--stdio"], "--config needs a value: --config FILE", "serve"),
        (["serve", "--stdio=yes"], "--stdio takes no value", "serve"),
        (["serve", "--log-level", "loud"], "--log-level is one of debug, info, warning, error; not 'loud'", "serve"),
        (["serve", "now"], "polyplex serve takes no argument 'now'", "serve"),
        (["call", "a", "{}", "b"], "polyplex call takes no argument 'b'", "call"),
        (["call"], "polyplex call needs NAME: the tool's name, as `polyplex tools` prints it", "call"),
        (["completion", "csh"], "SHELL is one of bash, zsh, fish; not 'csh'", "completion"),
        (["--nope"], "unknown option --nope", None),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(words: list[str], message: str, command: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert str(caught.value) == message
    assert (caught.value.command.name if caught.value.command else None) == command


def test_no_option_of_a_command_hides_another() -> None:
    for command in COMMANDS:
        names = [name for option in (*command.options, *EVERYWHERE) for name in option.names]
        assert len(names) == len(set(names)), command.name


def test_nothing_is_suggested_for_what_is_like_nothing() -> None:
    assert suggestion("zzzzzz", ["serve", "tools"]) == ""


def test_a_group_of_one_command_has_the_help_of_that_one() -> None:
    request = parse(["config", "--help"])
    assert (request.command and request.command.name, request.has("help")) == ("config check", True)
