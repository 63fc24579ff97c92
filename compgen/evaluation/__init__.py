"""Evaluation: metrics of predictions, significance, the quality of made examples, overlap of parts, pictures."""
