"""Search over what servers offer. This package's own names need no numpy; `index.SearchIndex` does: import it late."""

from polyplex.catalog.search.types import KINDS, Document, Found, Hit, Kind, Parameter

__all__ = ["KINDS", "Document", "Found", "Hit", "Kind", "Parameter"]
