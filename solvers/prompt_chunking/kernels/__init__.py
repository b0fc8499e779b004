"""Compiled code of the methods for `prompt-chunking` problems."""
