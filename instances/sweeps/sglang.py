"""Reader for results of SGLang's `bench_serving`. A file contains one result per line.

Newer results also contain the arguments of the server.
"""

from __future__ import annotations

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Run
from specopt.instances.sweeps.vllm import context, latency
from specopt.models.sweep import Setup

KEYS = {"output_throughput", "mean_e2e_latency_ms"}
"""Fields whose presence identifies a result of `bench_serving`."""


def sglang_run(fields: Fields) -> Run:
    """Return the run described by a result.

    If the concurrency is not fixed, the rounded mean concurrency is used.

    Raises
    ------
    InvalidInput
        If a field has an invalid value. The message names the field.
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
    """Return the arguments of the server.

    If prefill and decoding run on separate servers, the arguments are those of the first decode
    server.
    """
    server = fields.inner("server_info")
    return server.entries("decode")[0] if server.values.get("decode") else server
