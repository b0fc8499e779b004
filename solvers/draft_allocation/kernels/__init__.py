"""Compiled kernels of the methods for `draft-allocation` problems."""
