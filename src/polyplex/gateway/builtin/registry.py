"""The registry under another name, for the time being."""

from polyplex.gateway.builtins import BUILTIN, Builtins, BuiltinTool, ToolFailure, builtin_entry, text_result

__all__ = ["BUILTIN", "BuiltinTool", "Builtins", "ToolFailure", "builtin_entry", "text_result"]
