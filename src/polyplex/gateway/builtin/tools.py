"""Which built-in tools there are."""

from polyplex.gateway.builtin.as_tools import AsTools
from polyplex.gateway.builtin.call import CallTool
from polyplex.gateway.builtin.find import FindTools
from polyplex.gateway.core import Core


def offer(core: Core) -> None:
    """Add the tools that find and call others, and those that stand for resources and prompts."""
    core.builtins.add(FindTools(core).tool())
    core.builtins.add(CallTool(core, core.builtins.checker).tool())
    for tool in AsTools(core).tools():
        core.builtins.add(tool)
