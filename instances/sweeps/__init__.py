"""Measured throughput of engines by load and draft length, from what benchmarks write: one reader per source."""

from specopt.instances.sweeps.read import read_sweep, read_sweeps
from specopt.instances.sweeps.source import parse_source
from specopt.instances.sweeps.table import write_csv

__all__ = ["parse_source", "read_sweep", "read_sweeps", "write_csv"]
