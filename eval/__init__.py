"""Measures of quality on data sets, beside `bench`, which measures speed."""
