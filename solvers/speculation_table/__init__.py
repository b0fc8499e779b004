"""Speculation tables, which specify the best draft length for each of a few ranges of batch
sizes.
"""
