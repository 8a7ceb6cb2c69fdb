#!/usr/bin/env python3
"""Start the two HTTP servers of this example and keep them running until Ctrl-C; needs Node.js with npx.

They are @modelcontextprotocol/server-everything twice: over Streamable HTTP on port 3001 and over HTTP+SSE on port
3002, or on the ports in EVERYTHING_HTTP_PORT and EVERYTHING_SSE_PORT. Both listen on all interfaces of the machine.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

SERVERS = (("streamableHttp", "EVERYTHING_HTTP_PORT", "3001"), ("sse", "EVERYTHING_SSE_PORT", "3002"))
PACKAGE = "@modelcontextprotocol/server-everything"
START_SECONDS = 120
STOP_SECONDS = 5
pause = threading.Event()


def main() -> int:
    npx = shutil.which("npx")
    if npx is None:
        print("npx is not on PATH; install Node.js 22 or newer", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    ports = {mode: os.environ.get(variable, port) for mode, variable, port in SERVERS}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for mode, port in ports.items():
            # A process group of its own, since npx does not hand signals on.
            command = [npx, "-y", PACKAGE, mode]
            environment = {**os.environ, "PORT": port}
            started.append(subprocess.Popen(command, env=environment, stdout=sys.stderr, start_new_session=True))
        for server, (mode, port) in zip(started, ports.items(), strict=True):
            await_port(server, mode, int(port))
        print("ready: " + ", ".join(f"{mode} on port {port}" for mode, port in ports.items()), flush=True)
        while all(server.poll() is None for server in started):
            pause.wait(0.5)
        print("a server has ended", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        for server in started:
            end(server)


def await_port(server: "subprocess.Popen[bytes]", mode: str, port: int) -> None:
    """Wait until the port accepts connections; ends the program when the server ends, or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"{mode} did not start; is port {port} in use?")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            pause.wait(0.1)
        else:
            return
    sys.exit(f"{mode} does not accept connections on port {port} after {START_SECONDS} s")


def end(server: "subprocess.Popen[bytes]") -> None:
    """Ask the process group to end; kill what is left of it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, number)
            server.wait(STOP_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


if __name__ == "__main__":
    sys.exit(main())
