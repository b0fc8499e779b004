"""Reader for the `perf_results.csv` files written by speculators' evaluation tool.

The table contains the throughput by subset and request rate. The number of concurrent requests is
the measured rate times the latency (Little's law), rounded to an integer.
"""

from __future__ import annotations

from collections.abc import Iterator

from specopt.instances.reading.fields import CsvFile
from specopt.instances.reading.lines import Lines
from specopt.instances.sweeps.rows import Rows, Run

KEYS = ("rps_median", "latency_median_s", "output_tps_median")
"""Columns whose presence identifies a table in this format."""


def perf_runs(lines: Lines, rows: Rows) -> Iterator[Run]:
    """Yield the run described by each row of a table.

    Raises
    ------
    InvalidInput
        If a row is malformed. The message states the line and the column.
    """
    table = CsvFile(lines)
    table.need(*KEYS)
    for row in table:
        rate, latency, speed = (row.within(name, "a number > 0", 1e-9, 1e9) for name in KEYS)
        rows.assume("at as many requests at a time as their rate times their latency")
        yield Run(
            fields=row,
            tokens_per_second=speed,
            concurrency=max(1, round(rate * latency)),
            workload=row.text("subset"),
        )
