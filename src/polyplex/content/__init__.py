"""The shapes of text: what kind it is, its records, previews, cuts, summaries, tokens. No I/O."""
