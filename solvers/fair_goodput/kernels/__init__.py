"""Compiled code for the methods of `fair-goodput`."""
