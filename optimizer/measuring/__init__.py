"""Measurement of runtimes on this machine and on running servers."""
