"""Compiled code for the methods of `draft-control`."""
