"""`polyplex doctor`: says of every server what works, what does not, why, and what to do."""

from typing import Final

from polyplex.cli.arguments import Request
from polyplex.cli.configuration import count, describe, load_despite_unset
from polyplex.cli.diagnosis import Collision, Diagnosis, as_json, diagnose
from polyplex.cli.session import run
from polyplex.cli.terminal import LABEL_WIDTH, Colour, Terminal, shorten, stdout_is_terminal, write_result

ADDRESS_WIDTH: Final = 60
INDENT: Final = " " * LABEL_WIDTH
_COLOURS: Final[dict[str, Colour]] = {"ok": "green", "failed": "red", "off": "dim"}
_NOUNS: Final = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "resource template",
    "prompts": "prompt",
}


def doctor(request: Request) -> int:
    """Diagnose; the exit code is 1 when a server failed, a name is claimed twice, or what is configured is missing."""
    import sys

    terminal = Terminal()
    page = Terminal(sys.stdout)
    as_data = request.has("json")
    config, unset = load_despite_unset(request.options.get("config"))
    if not as_data:
        describe(config, page)

    width = max(map(len, config.servers), default=0)

    def report(diagnosis: Diagnosis) -> None:
        if not as_data:
            terminal.live("")
            write_result(shown(diagnosis, page, width))

    found, collisions, lacks = run(diagnose(config, unset, terminal, report), terminal, verbose=request.has("verbose"))
    elsewhere = unset.get("", [])
    failed = sum(diagnosis.state == "failed" for diagnosis in found)
    healthy = not (failed or collisions or elsewhere or lacks)
    if as_data:
        raw = as_json(config, found, collisions, lacks, healthy=healthy)
        import msgspec

        write_result((msgspec.json.format(raw, indent=2) if stdout_is_terminal() else raw).decode())
        return 0 if healthy else 1
    lines = [f"{page.paint('failed', 'red')}   {error}" for error in elsewhere]
    for lack in lacks:
        text = page.wrapped(f"{lack.key}: {lack.reason}; {lack.instead}", LABEL_WIDTH)
        lines.append(f"{page.paint('failed', 'red')}   {text}")
    lines += [_collision(collision, page) for collision in collisions]
    lines.append(_summary(found, len(collisions)))
    write_result("\n".join(lines))
    return 0 if healthy else 1


def shown(diagnosis: Diagnosis, page: Terminal, width: int = 0) -> str:
    """A server's diagnosis as lines: the state, what it is, and what is to be said about it."""
    state = page.paint(diagnosis.state, _COLOURS[diagnosis.state]) + " " * (LABEL_WIDTH - len(diagnosis.state))
    name = f"{diagnosis.name:<{width}}"
    facts = page.wrapped(_facts(diagnosis), LABEL_WIDTH + len(name) + 2)
    lines = [f"{state}{page.paint(name, 'bold')}  {page.paint(facts, 'dim')}"]
    if diagnosis.state == "ok":
        lines += _field("offers", _offers(diagnosis), page)
        for item in diagnosis.set_aside:
            lines += _field("aside", f"{item.name}: {item.reason}", page, "yellow")
        for local, public in diagnosis.renamed.items():
            lines += _field("renamed", f"{local} to {public}", page)
        for text in diagnosis.unmatched:
            lines += _field("config", f"{text}; see polyplex.servers in the configuration", page, "yellow")
    if diagnosis.state == "failed":
        lines += _field("why", diagnosis.reason, page)
        for number, line in enumerate(diagnosis.stderr):
            lines += _field("" if number else "stderr", line, page)
        for text in diagnosis.advice:
            lines += _field("do", text, page, "cyan")
    return "\n".join(lines)


def _field(label: str, text: str, page: Terminal, colour: Colour | None = None) -> list[str]:
    """A labelled text; on a terminal broken between words, so that it stays in its column."""
    head = f"{INDENT}{page.paint(label, colour) if colour else label}{' ' * (len(INDENT) - len(label))}"
    return [head + page.wrapped(text, 2 * LABEL_WIDTH)]


def _facts(diagnosis: Diagnosis) -> str:
    facts = [diagnosis.transport, shorten(diagnosis.address, ADDRESS_WIDTH)]
    if diagnosis.state == "ok":
        facts = [diagnosis.transport, f"{diagnosis.revision} ({diagnosis.era})", f"{diagnosis.seconds:.1f} s"]
    elif diagnosis.state == "failed" and diagnosis.seconds:
        facts.append(f"{diagnosis.seconds:.1f} s")
    return ", ".join(filter(None, facts))


def _offers(diagnosis: Diagnosis) -> str:
    parts = [count(number, _NOUNS[member]) for member, number in diagnosis.offers.items() if number]
    return ", ".join(parts) or "nothing"


def _collision(collision: Collision, page: Terminal) -> str:
    claim = " and ".join(collision.servers)
    head = f"{page.paint('failed', 'red')}   the {collision.kind} {collision.name} is offered by {claim}, so by neither"
    advice = 'set "naming": "prefix" in the polyplex object, or deny it for one of them'
    return "\n".join((head, *_field("do", advice, page, "cyan")))


def _summary(found: list[Diagnosis], collisions: int) -> str:
    if not found:
        return "servers  none configured; polyplex --help shows what to write into the configuration"
    states = [diagnosis.state for diagnosis in found]
    parts = [f"{states.count('ok')} ok"]
    parts += [f"{states.count(state)} {state}" for state in ("failed", "off") if state in states]
    if collisions:
        parts.append(f"{collisions} claimed twice")
    return f"\n{count(len(found), 'server')}: {', '.join(parts)}"
