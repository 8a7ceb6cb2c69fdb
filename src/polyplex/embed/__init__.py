"""Text vectors, for the catalog and for memory."""
