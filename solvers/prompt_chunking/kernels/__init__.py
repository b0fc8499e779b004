"""Compiled kernels of the methods for `prompt-chunking` problems."""
