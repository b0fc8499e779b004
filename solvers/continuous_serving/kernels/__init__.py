"""Compiled code of the methods of `continuous-serving`."""
