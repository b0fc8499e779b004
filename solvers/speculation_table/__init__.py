"""Speculation tables, which specify the best draft length for every batch size, in few ranges."""
