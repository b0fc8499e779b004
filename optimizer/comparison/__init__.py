"""Comparison of methods on instances, in parallel and resumable: cells, processes, records and
summaries.
"""
