"""Export of tools to model providers: their names and schemas made legal, their calls and results mapped back.

`reader` reads JSON Schema into `nodes`, `shaping` and `packing` fit these to one of the `dialects`, `emitting` writes
them; `mapping` takes arguments back, `calls` and `results` read and write the provider's messages.
"""

from polyplex.catalog.export.exporting import Aside, Export, ExportedTool, Provider, export

__all__ = ["Aside", "Export", "ExportedTool", "Provider", "export"]
