"""Compiled code of the methods for `continuous-serving` problems."""
