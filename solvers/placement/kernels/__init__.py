"""Compiled kernels of the methods for `placement`."""
