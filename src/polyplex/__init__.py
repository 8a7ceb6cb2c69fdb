"""polyplex: one endpoint, and one library, in front of any number of Model Context Protocol servers.

`async with polyplex.Multiplexer.from_config(path_or_dict) as mux: ...`; errors are in `polyplex.errors`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplex.errors import ConfigError, PolyplexError, RpcError, UpstreamError
    from polyplex.gateway.multiplexer import Multiplexer

__all__ = ["ConfigError", "Multiplexer", "PolyplexError", "RpcError", "UpstreamError"]


def __getattr__(name: str) -> Any:
    if name == "Multiplexer":
        from polyplex.gateway.multiplexer import Multiplexer

        return Multiplexer
    if name in __all__:
        from polyplex import errors

        return getattr(errors, name)
    raise AttributeError(f"module 'polyplex' has no attribute {name!r}")
