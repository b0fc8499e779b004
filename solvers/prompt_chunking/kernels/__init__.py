"""Compiled code of the methods of `prompt-chunking`."""
