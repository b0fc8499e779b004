"""Traces of requests: readers of public formats, and windows of a trace as problems."""

from specopt.instances.traces.read import read_trace
from specopt.instances.traces.recognise import FORMATS
from specopt.instances.traces.trace import Trace

__all__ = ["FORMATS", "Trace", "read_trace"]
