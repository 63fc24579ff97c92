"""Data: examples, vocabulary, formats, known data sets, splits, and random numbers.

Malformed data are a `DataError`, whose message says where, what was found, and what was expected.
"""
