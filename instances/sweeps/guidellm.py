"""Reader for GuideLLM's JSON report, which contains the strategy and the metrics of each benchmark.

The report does not contain the engine's draft length.
"""

from __future__ import annotations

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Run

MEANS = {
    "inter_token_latency_ms": "mean_tpot_ms",  # GuideLLM's time per token includes the first token
    "time_to_first_token_ms": "mean_ttft_ms",
    "output_token_count": "output_tokens",
}
"""Mapping from metrics in a report to the names under which a sweep contains their means."""


KEYS = {"benchmarks"}
"""Fields whose presence identifies a GuideLLM report."""


def guidellm_runs(fields: Fields) -> list[Run]:
    """Return a run for each benchmark in a report.

    Raises
    ------
    InvalidInput
        If a field has an invalid value. The message names the field.
    """
    return [_run(benchmark) for benchmark in fields.entries("benchmarks")]


def _run(benchmark: Fields) -> Run:
    setup = benchmark.inner(
        "config" if "config" in benchmark.values else "args"
    )  # args: before version 0.4
    metrics = benchmark.inner("metrics")
    speed = metrics.inner("output_tokens_per_second")
    return Run(
        fields=benchmark,
        tokens_per_second=speed.inner("successful").number("mean")
        or speed.inner("total").number("mean"),
        concurrency=_concurrency(setup.inner("strategy")),
        failed=metrics.inner("request_totals").number("errored"),
        model=setup.inner("backend").text("model"),
        also=_times(metrics),
    )


def _times(metrics: Fields) -> dict[str, float]:
    found: dict[str, float] = {}
    for field, name in MEANS.items():
        found |= metrics.inner(field).inner("successful").numbers({name: "mean"})
    between = metrics.inner("inter_token_latency_ms").inner("successful").inner("percentiles")
    return found | between.numbers({"p50_tpot_ms": "p50", "p99_tpot_ms": "p99"})


def _concurrency(strategy: Fields) -> int | None:
    """Return the number of concurrent requests, or None if requests arrive at a fixed rate."""
    kind = strategy.text("type_", "kind")
    if kind in ("concurrent", "throughput"):
        return strategy.integer("streams", "max_concurrency")
    return 1 if kind == "synchronous" else None
