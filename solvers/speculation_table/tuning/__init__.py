"""Choice of draft lengths based on measured throughput.

The modules predict throughput with bands, decide on a draft length for each batch size, and choose
the next points to measure.
"""
