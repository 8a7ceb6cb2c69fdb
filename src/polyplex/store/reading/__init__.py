"""Reading parts of a payload: ranges, lines, what a pattern finds, JSON paths and pages of records."""
