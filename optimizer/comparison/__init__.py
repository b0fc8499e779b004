"""Comparison of methods on instances. A comparison runs in parallel and can be resumed. The package
contains cells, worker processes, records and summaries.
"""
