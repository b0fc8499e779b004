"""Compiled kernels for the methods of `draft-allocation`."""
