"""Sans-I/O core of the Model Context Protocol: bytes to messages, messages to session state, revision to revision.

Nothing here opens a socket, starts a process, waits or logs. Above it: `mux`; below it: `config` and `telemetry`.
"""
