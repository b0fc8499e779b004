"""Speculation tables: the best draft length for each of a few ranges of batch sizes."""
