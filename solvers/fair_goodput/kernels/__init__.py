"""Compiled code of the methods of `fair-goodput`."""
