"""Compiled kernels of the methods for `verification-batch` problems."""
