"""Small instances of `prompt-chunking` for the conformance suite."""

from __future__ import annotations

import dataclasses

from specopt import Problem, PromptChunkingProblem, generate


def _instances() -> dict[str, Problem]:
    """Small instances of `prompt-chunking`: every wait and download, caps, grids, steps in g, no
    bytes, no delay.
    """
    base = generate("prompt-chunking/paper-4", prompt_tokens=10, message_milliseconds=0.5)
    assert isinstance(base, PromptChunkingProblem)
    replace = dataclasses.replace
    steps = {"tokens": [0.0, 10.0, 11.0, 16.0, 17.0], "seconds": [0.01, 0.01, 0.02, 0.02, 0.06]}
    return {
        "base": base,
        "random": generate("prompt-chunking/random", prompt_tokens=9, seed=1),
        "one token": replace(base, prompt_tokens=1),
        "one GPU": replace(base, pipeline_length=1),
        "no wait": replace(base, wait="none"),
        "overlapping wait": replace(base, wait="overlap"),
        "last token down": replace(base, download="last"),
        "last token down, no wait": replace(
            base, download="last", wait="none", message_overhead_seconds=0.0
        ),
        "two chunks": replace(base, max_chunks=2),
        "grid": replace(base, grid_tokens=4),
        "grid and cap": replace(base, grid_tokens=3, max_chunks=3),
        "grid beyond the prompt": replace(base, grid_tokens=64),
        "local": replace(
            base, local_overhead_seconds=1e-3, local_seconds_per_token=2e-3, head_seconds=5e-3
        ),
        "latency": replace(base, link_latency_seconds=0.02),
        "no bytes": replace(base, bytes_per_token=0.0),
        "steps": PromptChunkingProblem.from_dict(base.to_dict() | {"cloud_delay": steps}),
        "no delay": PromptChunkingProblem.from_dict(
            base.to_dict() | {"cloud_delay": {"tokens": [0.0, 1.0], "seconds": [0.0, 0.0]}}
        ),
    }


INSTANCES = _instances()
