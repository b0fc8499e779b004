"""Measured throughput of engines by load and draft length, from files of benchmarks: one reader per
format.
"""

from specopt.instances.sweeps.read import read_sweeps
from specopt.instances.sweeps.source import parse_source

__all__ = ["parse_source", "read_sweeps"]
