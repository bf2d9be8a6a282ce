"""Parsers of script output: one module per plan, one per format.

A plan's module has `parse` and lists the metrics that it returns in TRACED and UNTRACED.
"""
