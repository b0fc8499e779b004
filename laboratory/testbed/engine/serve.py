"""Serve every load with one setting of vLLM. This runs in the engine's own environment; see `make
engine`.

The number of active requests equals the concurrency until no request is left to follow one that
ends. Throughput is measured until then.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specopt.measuring.processor import processor
from specopt.models.errors import InvalidInput
from specopt.models.files import to_json, write_text
from testbed.engine.loads import ALONE, MIXED, Load, all_loads

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "OMP_NUM_THREADS": "1",
    "NUMBA_THREADING_LAYER": "workqueue",
}
"""Variables that must be set before Python starts, because torch reads the number of threads when
it is imported. The lookup drafter sets the threads of numba, which are also those of torch if numba
takes them from OpenMP.
"""
COUNTERS = "vllm:spec_decode_num_"
MAX_TOKENS = 512


def serve(folder: Path, setting: Mapping[str, Any] | None, *, alone: bool) -> dict[str, Any]:
    """Start an engine and serve all loads.

    Parameters
    ----------
    folder
        Folder of the models, as written by `testbed.engine.checkpoints`.
    setting
        Its `speculative_config`, with a draft model given by its folder, or None for no
        speculation.
    alone
        Whether each kind of task is also served alone.
    """
    missing = [name for name, value in ENVIRONMENT.items() if os.environ.get(name) != value]
    if missing:
        raise InvalidInput(
            f"environment: expected {missing[0]}={ENVIRONMENT[missing[0]]} before Python starts"
        )
    import vllm

    engine = vllm.LLM(
        str(folder / "verify"),
        skip_tokenizer_init=True,
        dtype="float32",
        max_model_len=MAX_TOKENS,
        max_num_seqs=16,
        enforce_eager=True,
        enable_prefix_caching=False,
        disable_log_stats=False,
        speculative_config=_located(folder, setting),
    )
    loads = all_loads(alone=alone)
    _serve(engine, Load("tuning", MIXED, ALONE), "warm-up")
    return {
        "format": "specopt-engine/1",
        "engine": "vllm",
        "version": vllm.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"processor": processor(), "cores": len(os.sched_getaffinity(0))},
        "environment": ENVIRONMENT,
        "threads": 1,  # `_serve` has checked it after every load
        "speculative_config": setting,
        "loads": [_serve(engine, load, str(number)) for number, load in enumerate(loads)],
    }


def _located(folder: Path, setting: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if setting is None or "model" not in setting:
        return None if setting is None else dict(setting)
    return {**setting, "model": str(folder / setting["model"])}


def _serve(llm: Any, load: Load, name: str) -> dict[str, Any]:
    """Serve one load on one thread. Return the end times of the requests, and the counters of the
    engine.
    """
    import torch
    from vllm import SamplingParams

    from testbed.checkpoints import prompt_tokens

    torch.set_num_threads(1)  # even if another number was set while the engine started
    engine, before = llm.llm_engine, _counters(llm)
    waiting = [
        (f"{name}-{number}", {"prompt_token_ids": prompt_tokens(prompt.text)}, count)
        for number, (prompt, count) in enumerate(zip(load.texts, load.tokens, strict=True))
    ][::-1]
    running: dict[str, int] = {}
    ended: dict[str, list[float]] = {}
    begin, full = time.perf_counter(), None
    busy = time.process_time()
    while waiting or running:
        while waiting and len(running) < load.concurrency:
            request, prompt, count = waiting.pop()
            sampling = SamplingParams(
                temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False
            )
            engine.add_request(request, prompt, sampling)
            running[request] = 0
        for output in engine.step():
            running[output.request_id] = len(output.outputs[0].token_ids)
            if output.finished:
                ended[output.request_id] = [
                    time.perf_counter() - begin,
                    running.pop(output.request_id),
                ]
        if full is None and not waiting and len(running) < load.concurrency:
            seconds = time.perf_counter() - begin
            full = {
                "seconds": seconds,
                "processor_seconds": time.process_time() - busy,
                "tokens": sum(running.values()) + sum(int(count) for _, count in ended.values()),
            }
            counted = {key: _less(value, before.get(key)) for key, value in _counters(llm).items()}
    assert full is not None, "requests end"
    if torch.get_num_threads() != 1:
        raise InvalidInput(
            f"{load.workload}: expected one thread, got {torch.get_num_threads()} by the end of the"
            " load"
        )
    return {
        "prompts": load.prompts,
        "workload": load.workload,
        "concurrency": load.concurrency,
        **full,
        "ended": [[round(seconds, 4), tokens] for seconds, tokens in ended.values()],
        "counters": counted,
    }


def _counters(llm: Any) -> dict[str, Any]:
    """Return the engine's current counters of drafts."""
    return {
        metric.name.removeprefix(COUNTERS): (
            list(metric.values) if hasattr(metric, "values") else metric.value
        )
        for metric in llm.get_metrics()
        if metric.name.startswith(COUNTERS)
    }


def _less(now: Any, before: Any) -> Any:
    if before is None:
        return now
    if isinstance(now, list):
        return [one - other for one, other in zip(now, before, strict=True)]
    return now - before


if __name__ == "__main__":
    models, given, found = Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
    write_text(found, to_json(serve(models, given, alone="alone" in sys.argv)) + "\n")
