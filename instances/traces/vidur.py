"""Traces of the simulator Vidur: a CSV table, times in seconds. Its tables of lengths alone have no arrivals."""

from __future__ import annotations

from specopt.instances.traces.table import Table

VIDUR = Table(name="vidur", arrival="arrived_at", input="num_prefill_tokens", output="num_decode_tokens", time_unit="s")
