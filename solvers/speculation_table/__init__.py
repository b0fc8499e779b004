"""Speculation tables, which specify the best draft length for ranges of batch sizes."""
