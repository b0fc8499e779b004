"""Measured throughput of engines by load and draft length.

Each module reads the benchmark files of one format.
"""

from specopt.instances.sweeps.read import read_sweeps
from specopt.instances.sweeps.source import parse_source

__all__ = ["parse_source", "read_sweeps"]
