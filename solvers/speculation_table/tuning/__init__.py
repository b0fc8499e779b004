"""Draft lengths chosen from measured throughput: predictions with bands, decisions, and what to
measure next.
"""
