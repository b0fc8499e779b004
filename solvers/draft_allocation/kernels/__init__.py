"""Compiled kernels for the methods for `draft-allocation` problems."""
