"""Tools that polyplex itself offers, beside those of the servers behind it."""
