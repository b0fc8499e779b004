"""Problem number n of a corner of continuous serving: tasks of one to three tokens, acceptance next
to 1, ties.
"""

from __future__ import annotations

import random
from typing import Any

from specopt import ContinuousServingProblem
from specopt.models.decoder import Decoder

NEARLY_ONE = [1 - 1e-15, 1 - 1e-13, 1 - 1e-12, 1 - 2e-12, 1 - 1e-11, 1 - 1e-9, 1 - 1e-6, 0.999]
MECHANISMS = ["pipelined", "sequential", "autoregressive", "any"]


def corner_problem(number: int) -> dict[str, Any]:
    """Return the problem's JSON form: the same whenever and wherever it is asked for."""
    rng = random.Random(number)
    K, most = rng.choice([1, 2, 2, 2, 3, 3]), rng.choice([1, 2, 2, 3])
    inputs = [rng.randint(1, rng.choice([1, 3, 40])) for _ in range(K)]
    length = rng.choice([1, 1, 2]) if K < 3 or most < 3 else 1
    data: dict[str, Any] = {
        "format": "specopt/1",
        "kind": "continuous-serving",
        "input_tokens": inputs if rng.random() < 0.6 else inputs[:1] * K,
        "output_tokens": [rng.randint(1, most) for _ in range(K)],
        "snr": [rng.choice([1.0, 10 ** rng.uniform(0, 4)]) for _ in range(K)],
        "bandwidth_hz": 10 ** rng.uniform(3, 13),
        "draft": _model(rng),
        "draft_runtime": _runtime(rng),
        "verify": _model(rng),
        "verify_runtime": _runtime(rng),
        "draft_memory_bytes": 1e12,
        "acceptance_rate": rng.choice(NEARLY_ONE),
        "max_speculation_length": length,
        "mechanism": rng.choice(MECHANISMS),
        "objective": rng.choice(["mean_latency", "mean_latency", "makespan"]),
        "output_lengths": rng.choice(["known", "known", "conservative", "predicted"]),
    }
    if rng.random() < 0.4:
        data["acceptance_rate"] = [rng.choice([*NEARLY_ONE, 0.5]) for _ in range(K)]
    if data["output_lengths"] == "predicted":
        data["output_samples"] = [
            [rng.randint(1, most) for _ in range(K)] for _ in range(rng.choice([1, 1, 2]))
        ]
    if rng.random() < 0.25 and K * most * length < 6:
        data["min_speculation_length"] = 0
    if rng.random() < 0.3:
        data["regroup_seconds"] = 10 ** rng.uniform(-6, -1)
    if rng.random() < 0.3:
        scale = 10 ** rng.uniform(-4, 6)
        data["arrival_seconds"] = [
            scale * rng.choice([0, 0, 1, 1, 2, rng.random()]) for _ in range(K)
        ]
    models = ContinuousServingProblem.from_dict(data)
    for which in ("draft", "verify"):
        if rng.random() < 0.3:
            data[f"{which}_memory_bytes"] = _tight(
                rng, getattr(models, which), max(data["input_tokens"]) + most
            )
    return data


def _model(rng: random.Random) -> dict[str, Any]:
    """Return a small shape, by the paper's counts or the exact ones."""
    shape = {
        "layers": rng.randint(1, 3),
        "hidden": rng.choice([1, 64, 3000]),
        "ffn": rng.choice([1, 100, 4000]),
    }
    if rng.random() < 0.7:
        return shape
    heads = {
        "heads": 2,
        "kv_heads": 1,
        "head_dim": 8,
        "gated": rng.random() < 0.5,
        "vocabulary": 100,
        "tied": True,
    }
    return {"cost": "exact"} | shape | heads


def _runtime(rng: random.Random) -> dict[str, Any]:
    """Return a runtime of one or two pieces, either part of which may be nothing."""
    pieces = [
        {
            "seconds_per_flop": rng.choice([0.0, 10 ** rng.uniform(-14, -6)]),
            "overhead_seconds": rng.choice([0.0, 10 ** rng.uniform(-5, -1)]),
        }
        for _ in range(rng.choice([1, 1, 2]))
    ]
    return {"pieces": pieces}


def _tight(rng: random.Random, model: Decoder, tokens: int) -> float:
    """Return memory for one task of `tokens` tokens, or a few, and now and then a hair less, within
    the tolerance.
    """
    cache = model.kv_bytes_per_token * tokens * rng.choice([1, 1, 1.5, 2])
    return float((model.parameter_bytes + cache) * rng.choice([1.0, 1.0, 1 - 5e-10]))
