"""Morphology: words with their analyses, and the splits of them that ask for generalisation."""
