"""Compiled kernels of the methods for `continuous-serving` problems."""
