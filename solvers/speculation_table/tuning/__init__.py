"""Choice of draft lengths from measured throughput: predictions with bands, decisions, and the next
points to measure.
"""
