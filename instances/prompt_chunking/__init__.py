"""Families of `prompt-chunking` problems."""
