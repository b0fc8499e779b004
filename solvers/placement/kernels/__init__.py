"""Compiled kernels of the placement methods."""
