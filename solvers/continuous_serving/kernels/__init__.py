"""Compiled kernels for the methods for `continuous-serving` problems."""
