"""Which built-in tools there are."""

from polyplex.gateway.builtin.as_tools import AsTools
from polyplex.gateway.builtin.call import CallTool
from polyplex.gateway.builtin.find import FindTools
from polyplex.gateway.builtin.read_payload import ReadPayload
from polyplex.gateway.core import Core


def offer(core: Core) -> None:
    """Add the tools that find and call others, that stand for resources and prompts, and that read stored results."""
    core.builtins.add(FindTools(core).tool())
    core.builtins.add(CallTool(core, core.builtins.checker).tool())
    for tool in AsTools(core).tools():
        core.builtins.add(tool)
    if not core.results.off:
        payloads = ReadPayload(core)
        core.builtins.add(payloads.tool())
        core.builtins.add_reader(core.results.reading.serves, payloads.resource())
