"""Traces of requests: readers for public formats, and the conversion of traces into problems."""

from specopt.instances.traces.read import FORMATS, read_trace
from specopt.instances.traces.trace import Trace

__all__ = ["FORMATS", "Trace", "read_trace"]
