"""The JSON of llama.cpp's speed-bench: tokens per second by category of prompts.

It does not say the draft length; where no token was drafted, there was no speculation.
"""

from __future__ import annotations

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Run

KEYS = {"summary", "config", "selected_samples"}
"""Fields that a result has."""


def speed_bench_runs(fields: Fields) -> list[Run]:
    """Return a run for each category; a request's tokens per second count once per request.

    Raises
    ------
    InvalidInput
        If a field holds something else than it should; the message names it.
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
