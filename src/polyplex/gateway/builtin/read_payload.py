"""`polyplex__read_payload`: parts of stored results for a model; and `resources/read` of their URIs for programs."""

from typing import Final

from polyplex.downstream.session import Call
from polyplex.errors import PayloadError
from polyplex.gateway.builtins import BuiltinTool, Json, ToolFailure, builtin_entry
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.profile import Profile
from polyplex.transports.exchange import Reply

READ_PAYLOAD: Final = "polyplex__read_payload"
_DESCRIPTION: Final = (
    "Read a part of a stored result: by bytes, lines, records, JSONPath, or a search in it. "
    "The answer says how to read on."
)
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "uri": {"type": "string", "description": "polyplex://payload/... as a result gave it."},
        "offset": {"type": "integer", "description": "Byte to begin at; negative from the end."},
        "limit": {"type": "integer", "minimum": 1, "description": "Most bytes, lines, records, values or matches."},
        "lines": {"type": "string", "description": 'Lines "FIRST-LAST", or "-50" for the last 50.'},
        "page": {"type": "integer", "minimum": 1, "description": "Page of records of a JSON array, CSV or lines."},
        "json_path": {"type": "string", "description": "Such as $.items[0:5].name or $..id"},
        "grep": {"type": "string", "description": "Only lines with this text."},
        "regex": {"type": "boolean", "description": "grep is a regular expression."},
        "context": {"type": "integer", "minimum": 0, "description": "Lines around each match."},
        "cursor": {"type": "string", "description": "Where the answer before said to go on."},
    },
    "required": ["uri"],
}


class ReadPayload:
    """Both ways to read, for all clients."""

    def __init__(self, core: Core) -> None:
        self._reading = core.results.reading

    def tool(self) -> BuiltinTool:
        """The tool, listed for clients whose results are bounded. It checks its arguments itself, and takes more."""
        entry = builtin_entry("read_payload", "Read a stored result", _DESCRIPTION, _SCHEMA)
        return BuiltinTool(entry, self._run, _when_bounded, checked=False)

    def resource(self) -> BuiltinTool:
        """What answers `resources/read` of payloads; it is never listed."""
        entry = builtin_entry("payload", "Stored result", "", {"type": "object"})
        return BuiltinTool(entry, self._read, _never, checked=False)

    async def _run(self, call: Call, client: Client, arguments: Json) -> bytes:
        try:
            return await self._reading.tool(call, client, arguments)
        except PayloadError as error:
            raise ToolFailure(f"Nothing was read: {error}") from None

    async def _read(self, call: Call, client: Client, arguments: Json) -> Reply:
        return Reply(result=await self._reading.resource(call, client))


def _when_bounded(profile: Profile, searching: bool) -> bool:
    return profile.results != "raw"


def _never(profile: Profile, searching: bool) -> bool:
    return False
