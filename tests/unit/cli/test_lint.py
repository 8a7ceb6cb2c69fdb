import io

from polyplex.catalog.lint.findings import Finding, in_tool, override
from polyplex.cli.lint import shown
from polyplex.cli.terminal import Terminal

FINDING = Finding(
    rule="description-missing",
    severity="error",
    harm=90,
    server="my server",
    name="t",
    key="my_server__t",
    message="has no description",
    advice="say what it does",
    paste=(
        override("my server", "t", "description", value='Says "it"\u202e.\nTwice.'),
        in_tool("annotations", "readOnlyHint", value=True),
    ),
)


def test_a_finding_says_what_why_and_what_to_paste() -> None:
    assert shown(FINDING, Terminal(io.StringIO())) == (
        "error    my_server__t  description-missing\n"
        "         has no description\n"
        "         do       say what it does\n"
        '         paste    polyplex.servers["my server"].tools.t.description:\n'
        '                  "Says \\"it\\"\\u202e.\\nTwice."\n'
        "         author   annotations.readOnlyHint:\n"
        "                  true"
    )


def test_words_for_the_same_key_are_shown_once() -> None:
    pasted: set[tuple[str, ...]] = set()
    assert "Twice." in shown(FINDING, Terminal(io.StringIO()), pasted)
    again = shown(FINDING, Terminal(io.StringIO()), pasted)
    assert "         paste    see the words that are proposed for it above\n" in again
    assert "Twice." not in again


def test_what_servers_say_cannot_drive_the_terminal() -> None:
    finding = Finding(
        rule="r", severity="note", harm=1, server="s", key="s__\x1b[2Jt", message="is \x1b[31mred", advice="do\nit"
    )
    assert shown(finding, Terminal(io.StringIO())) == (
        "note     s__ [2Jt  r\n         is [31mred\n         do       do it"
    )
