"""Compiled code of the methods of `draft-control`."""
