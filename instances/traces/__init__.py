"""Traces of requests: readers of public formats, and conversion of parts of a trace to problems."""

from specopt.instances.traces.read import FORMATS, read_trace
from specopt.instances.traces.trace import Trace

__all__ = ["FORMATS", "Trace", "read_trace"]
