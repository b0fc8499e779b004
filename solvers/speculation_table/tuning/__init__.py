"""Choice of draft lengths based on measured throughput, with predictions and their bands,
decisions, and the next points to measure.
"""
