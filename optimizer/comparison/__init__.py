"""Comparison of methods on instances, run in parallel and resumable: cells, worker processes,
records and summaries.
"""
