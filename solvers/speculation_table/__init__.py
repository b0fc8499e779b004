"""Speculation tables: the best draft length for every batch size, in few ranges."""
