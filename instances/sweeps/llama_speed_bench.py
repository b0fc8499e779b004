"""Reader for the JSON output of llama.cpp's speed-bench: tokens per second by prompt category.

The file does not contain the draft length. If no tokens were drafted, the run is treated as a run
without speculation.
"""

from __future__ import annotations

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Run

KEYS = {"summary", "config", "selected_samples"}
"""Fields whose presence identifies a speed-bench result."""


def speed_bench_runs(fields: Fields) -> list[Run]:
    """Return a run for each prompt category.

    The throughput of a run is the throughput per request times the concurrency.

    Raises
    ------
    InvalidInput
        If a field has an invalid value. The message names the field.
    """
    requests = fields.inner("config").integer("concurrency") or 1
    runs = []
    for row in fields.entries("summary"):
        speed = row.number("avg_pred_t/s")
        runs.append(
            Run(
                fields=row,
                tokens_per_second=None if speed is None else speed * requests,
                concurrency=requests,
                said=... if row.number("draft_n") else None,
                failed=fields.number("failed_samples"),
                workload=row.text("category"),
            )
        )
    return runs
