"""Draft lengths chosen from measured throughput: predictions with bands, decisions, and the next
measurements.
"""
