"""Compiled code of the methods for `verification-batch` problems."""
