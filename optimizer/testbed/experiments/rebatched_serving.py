"""Rebatched plans of serving latency against the best static ones: the same tasks, which ask for different lengths."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.serving_latency import Mechanism, ServingLatencyPlan
from specopt.solvers.serving_latency.simulate import simulate
from specopt.testbed.experiments import plans_of_methods, serving_latency
from specopt.testbed.experiments.serving_latency import carry_out, known, problem_of
from specopt.testbed.pairs import draw_prompts
from specopt.testbed.processes import Laboratory
from specopt.testbed.records import Keep

__all__ = ["KIND", "OURS", "RIVALS", "TINY", "Settings", "carry_out", "prepare"]

KIND = "rebatched-serving"
OURS, RIVALS = "rebatching", ("length-aware",)

LABELS: tuple[Mechanism, ...] = ("pipelined", "autoregressive")
REPLICATIONS = 200


@dataclass(frozen=True, kw_only=True)
class Settings(serving_latency.Settings):
    """What is played.

    Parameters
    ----------
    least_output_tokens
        What a task asks for at least; `output_tokens` is the most.
    """

    tasks: tuple[int, ...] = (8, 12)
    output_tokens: int = 48
    repeats: int = 3
    least_output_tokens: int = 4


TINY = Settings(**dataclasses.asdict(serving_latency.TINY) | {"tasks": (6,), "repeats": 1, "output_tokens": 16})
"""Settings that tests play in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Measure what predictions know, and lay down problems, plans and predictions."""
    data = known(laboratory, settings, keep)
    random = np.random.default_rng(settings.seed)
    pool = draw_prompts(laboratory.pair, sum(settings.tasks), played=True, seed=settings.seed)
    for scene, tasks in enumerate(settings.tasks):
        prompts, pool = pool[:tasks], pool[tasks:]
        outputs = random.integers(settings.least_output_tokens, settings.output_tokens, size=tasks, endpoint=True)
        data["prompts"].append(prompts)
        if settings.temperature == 0.0:
            pairs = zip(prompts, outputs.tolist(), strict=True)
            data["alone"].append([laboratory.verify.greedy(prompt, count) for prompt, count in pairs])
        snr = random.uniform(2.0, 20.0, size=tasks)
        for label in LABELS:
            static = dataclasses.replace(
                problem_of(laboratory, data, settings, prompts, snr, label),
                output_tokens=outputs,
                output_lengths="known",
            )
            for problem in (static, dataclasses.replace(static, batching="rebatched")):
                data["problems"].append(problem.to_dict())
                for names, plan in plans_of_methods(problem, ServingLatencyPlan, (OURS, *RIVALS), settings.seed):
                    found = problem.evaluate(plan)
                    model = {"total_seconds": found.objective, "undisturbed_seconds": found.objective}
                    predicted = {"model": model}
                    if label != "autoregressive":
                        mean = simulate(problem, plan, replications=REPLICATIONS).mean
                        predicted["simulation"] = {"total_seconds": mean, "undisturbed_seconds": mean}
                    trial = {"scene": scene, "label": label, "problem": len(data["problems"]) - 1, "methods": names}
                    data["trials"].append({**trial, "plan": plan.to_dict(), "predicted": predicted, "measured": []})
    return data
