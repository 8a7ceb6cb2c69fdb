"""polyplex with every message checked: `python tests/wire/tapped.py REPORT serve ...`.

What is found is appended to the file REPORT, a line each, which `watch.follow` reads. For tests in which polyplex is a
process of its own. Results that stream through, and answers to what servers ask, are not seen.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from polyplex.__main__ import main
from polyplex.downstream.calls import Running, response_frame
from polyplex.downstream.session import Call, Session
from polyplex.upstreams.connection import Connection
from tests.wire.schema import LATEST_LEGACY, MODERN, Sender, problems


class Tap:
    """Takes the places of the methods through which messages leave."""

    def __init__(self, report: Path) -> None:
        self._report = report

    def note(self, where: str, message: Any, found: Iterable[str]) -> None:
        """Append what is wrong with a message."""
        lines = [json.dumps({"where": where, "message": message, "problem": problem}) + "\n" for problem in found]
        if lines:
            with self._report.open("a", encoding="utf-8") as file:
                file.writelines(lines)

    def frame(self, frame: bytes, revision: str, sender: Sender, answers: str | None = None) -> None:
        """Check one message."""
        message = json.loads(frame)
        where = "to the client" if sender == "server" else "to the server"
        self.note(where, message, problems(message, revision, sender, answers))

    def install(self) -> None:
        """From now on everything is checked."""
        self._clients()
        self._servers()

    def _clients(self) -> None:
        make, finish, send = Call.__init__, Running._finish, Session.send

        def made(call: Call, session: Session, message: Any, way: Callable[[bytes], None], *rest: Any) -> None:
            def checked(frame: bytes) -> None:
                self.frame(frame, session.revision, "server")
                way(frame)

            make(call, session, message, checked, *rest)

        def finished(running: Running, reply: Any) -> None:
            call = running._call
            if reply.stream is None and not running._over:
                self.frame(response_frame(call, reply), call.session.revision, "server", call.method)
            finish(running, reply)

        def sent(session: Session, frame: bytes) -> None:
            self.frame(frame, session.revision, "server")
            send(session, frame)

        for owner, name, method in ((Call, "__init__", made), (Running, "_finish", finished), (Session, "send", sent)):
            setattr(owner, name, method)

    def _servers(self) -> None:
        start, notify = Connection.start, Connection.notify

        def revision(connection: Connection, method: str) -> str:
            if connection.peer is not None:
                return connection.peer.revision
            return MODERN if method == "server/discover" else LATEST_LEGACY

        def started(connection: Connection, method: str, params: bytes | None, **rest: Any) -> Any:
            message = {"jsonrpc": "2.0", "id": 0, "method": method}
            message |= {} if params is None else {"params": json.loads(params)}
            self.frame(json.dumps(message).encode(), revision(connection, method), "client")
            return start(connection, method, params, **rest)

        def notified(connection: Connection, method: str, params: bytes | None = None) -> None:
            message = {"jsonrpc": "2.0", "method": method}
            message |= {} if params is None else {"params": json.loads(params)}
            self.frame(json.dumps(message).encode(), revision(connection, method), "client")
            notify(connection, method, params)

        for name, method in (("start", started), ("notify", notified)):
            setattr(Connection, name, method)


def command(report: Path) -> list[str]:
    """What to run in place of `python -m polyplex`."""
    return [sys.executable, str(Path(__file__).resolve()), str(report)]


if __name__ == "__main__":
    Tap(Path(sys.argv.pop(1))).install()
    main()
