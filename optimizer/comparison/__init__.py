"""Methods against instances, in parallel and with a memory: cells, processes, results,
summaries.
"""
