"""Results of SGLang's `bench_serving`, one on each line of a file; newer ones hold the server's
arguments as well.
"""

from __future__ import annotations

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Run
from specopt.instances.sweeps.vllm import context, latency
from specopt.models.sweep import Setup

KEYS = {"output_throughput", "mean_e2e_latency_ms"}
"""Fields that the result of a run has."""


def sglang_run(fields: Fields) -> Run:
    """Return the run of a result; without a fixed concurrency, it is the mean one, rounded.

    Raises
    ------
    InvalidInput
        If a field holds something else than it should; the message names it.
    """
    concurrency = fields.integer("max_concurrency")
    if concurrency is None:
        mean = fields.number("concurrency")
        concurrency = None if mean is None else max(1, round(mean))
    server = _server(fields)
    steps = server.integer("speculative_num_steps")
    return Run(
        fields=fields,
        tokens_per_second=fields.number("output_throughput"),
        concurrency=concurrency,
        said=... if steps is None else steps,
        acceptance_length=fields.number("accept_length") or None,
        program="SGLang",
        workload=fields.text("workload", "dataset_name"),
        context_tokens=context(fields),
        model=server.text("model_path"),
        setup=Setup(topk=server.integer("speculative_eagle_topk") or 1),
        also=latency(fields),
    )


def _server(fields: Fields) -> Fields:
    """Return the server's arguments; of servers apart for prefill and decode those of the first
    that decodes.
    """
    server = fields.inner("server_info")
    return server.entries("decode")[0] if server.values.get("decode") else server
