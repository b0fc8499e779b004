"""Compiled code of the methods of `verification-batch`."""
