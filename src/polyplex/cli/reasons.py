"""Why a server failed, in a few words, and what to do about it."""

import re
from typing import Final

from polyplex.config import ServerConfig

_STEP: Final = re.compile(r"^(?:server/discover|initialize)(?:: | (?=answered))")
_HINTS: Final = ("; set caFile", "; set headers", "; it moved to")
_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_MISSING: Final = re.compile(r"(?i)not set|required|missing|must be set|undefined|not (?:provided|found|defined)")

# What an address answered, most telling first, and what to do about it.
_URL_ADVICE: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"it moved to (\S+): change url", "change url to {0}"),
        (r"WRONG_VERSION_NUMBER", "this port does not speak TLS; write http:// in url, or correct the port"),
        (
            r"(?i)certificate|ssl|tls",
            "if its certificate comes from a private authority, name that authority's PEM file in "
            "polyplex.servers.{name}.caFile",
        ),
        (r"(?i)refused|connect call failed", "nothing listens there; start the server, or correct the port in url"),
        (
            r"(?i)name or service|nodename|resolution|no address|getaddrinfo",
            "the host name is not known; correct url, or check the network and the proxy",
        ),
        (r"HTTP 40[045]", "this address is no MCP endpoint; check the path in url, often /mcp or /sse"),
        (r"text/html", "this address is a web page, no MCP endpoint; check the path in url, often /mcp or /sse"),
        (r"HTTP 5\d\d", "the server itself fails; look at its log, or try again later"),
    )
)


def plain_reason(error: str) -> str:
    """An upstream's error without the steps of the handshake, and each thing said once."""
    parts = [part for part in re.split(r"; (?=server/discover|initialize|no handshake|as HTTP)", error) if part]
    said = list(dict.fromkeys(_NUMBER.sub("", _STEP.sub("", part)) for part in parts))
    said = [part.replace("; it wants credentials: set headers", "; set headers") for part in said]
    useful = [part for part in said if not part.startswith(("server/discover took", "no answer to server/discover"))]
    return "; ".join(useful or said)


def split_advice(reason: str) -> tuple[str, str | None]:
    """The reason, and the advice that is already part of it: `...; install it`."""
    for mark in _HINTS:  # what `advice` says with the names of the configuration
        reason = reason.partition(mark)[0]
    for mark in ("; install", "; npx comes", "; uvx comes", "; bunx comes", "; create it", "; correct", "; chmod"):
        head, found, tail = reason.partition(mark)
        if found:
            return head, f"{mark[2:]}{tail}"
    return reason, None


def without_last_words(reason: str) -> str:
    """The reason without the end of stderr, for where that is shown by itself."""
    return re.sub(r"; its last words: .*", "", reason)


def advice(server: ServerConfig, reason: str, stderr: list[str]) -> list[str]:
    """What to do about a failure, most likely first; empty where nothing is known."""
    said = split_advice(reason)[1]
    if said is not None:
        return [said]
    found = _for_process(server, reason, stderr) if server.kind == "stdio" else _for_url(server, reason)
    return list(dict.fromkeys(found))


def _for_process(server: ServerConfig, reason: str, stderr: list[str]) -> list[str]:
    text = "\n".join(stderr)
    found: list[str] = []
    for line in stderr:
        variable = _VARIABLE.search(line) if _MISSING.search(line) else None
        if variable is not None:
            name = variable[0]
            found.append(
                f'give it the variable: "env": {{"{name}": "${{{name}}}"}} in its entry (servers do not inherit the '
                "environment of polyplex)"
            )
            break
    if re.search(r"E404|404 Not Found.*npm|No solution found|not found in the package registry", text):
        found.append("the package does not exist under this name; correct it in args")
    if re.search(r"ModuleNotFoundError|Cannot find module|No module named", text):
        found.append("it is not installed completely, or args name the wrong file; run the command by hand to see")
    if re.search(r"(?im)^usage:|unrecognized arguments|unknown option|invalid option", text):
        found.append("it does not accept these arguments; correct args")
    if re.search(r"invalid peer certificate|CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|local issuer certificate", text):
        found.append(
            "it does not trust the certificates it was shown; where polyplex is started, set SSL_CERT_FILE (uv, "
            "Python) or NODE_EXTRA_CA_CERTS (Node.js) to a PEM file of your network's authority"
        )
    elif re.search(r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|Could not resolve|dns error|error sending request", text):
        found.append("it could not reach the network; check the connection and the proxy")
    if "within" in reason:
        found.append(_slow(server))
        found.append("check that it speaks MCP on stdin and stdout; some need a flag such as --stdio")
    elif not found and "exited" in reason:
        found.append(f"run it by hand to see more: {command_line(server)}")
    return found


def _slow(server: ServerConfig) -> str:
    first = "a first start may still be downloading; " if server.command in ("npx", "uvx", "bunx", "docker") else ""
    key = f"polyplex.servers.{server.name}.connectTimeoutSeconds"
    return f"{first}try again, or raise {key} (now {server.options.connect_timeout_seconds:g})"


def _for_url(server: ServerConfig, reason: str) -> list[str]:
    if "HTTP 401" in reason or "HTTP 403" in reason:
        if any(name.lower() == "authorization" for name in server.headers):
            return ["the server refuses this Authorization header; check that the token is right and has not expired"]
        return ['it wants to know who you are: "headers": {"Authorization": "Bearer ${TOKEN}"} in its entry']
    if "within" in reason or "timed out" in reason:
        return [_slow(server), "check that the address is reachable from here, and the proxy"]
    for pattern, text in _URL_ADVICE:
        match = pattern.search(reason)
        if match is not None:
            return [text.format(*match.groups(), name=server.name)]
    if "closed before an answer" in reason and server.url.startswith("http://"):
        return ["look at the log of the server; if it speaks TLS, write https:// in url"]
    return []


def command_line(server: ServerConfig) -> str:
    """The command of a stdio server, ready for a shell, with what looks like a secret masked."""
    import shlex

    from polyplex.telemetry.redact import redact

    return redact(shlex.join((server.command, *server.args)))
