"""Readers for sweeps, which are measurements of an engine's throughput by load and draft length.

Most modules read the benchmark files of one format.
"""

from specopt.instances.sweeps.read import read_sweeps
from specopt.instances.sweeps.source import parse_source

__all__ = ["parse_source", "read_sweeps"]
