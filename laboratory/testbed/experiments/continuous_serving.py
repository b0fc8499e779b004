"""Plans of continuous serving against the best fixed batches, for the same tasks with different
output lengths.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.api.simulate import simulate
from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.models.fields import Ints
from specopt.models.serving_data import Mechanism
from testbed.experiments import plans_of_methods, serving_latency
from testbed.experiments.serving_latency import carry_out, known, scenes
from testbed.processes import Laboratory
from testbed.records import Keep

__all__ = ["KIND", "OURS", "RIVALS", "TINY", "Settings", "carry_out", "prepare"]

KIND = ContinuousServingProblem.kind
OURS, RIVALS = "rebatching", ("length-aware",)

LABELS: tuple[Mechanism, ...] = ("pipelined", "autoregressive")
REPLICATIONS = 200


@dataclass(frozen=True, kw_only=True)
class Settings(serving_latency.Settings):
    """Settings of the plays.

    Parameters
    ----------
    least_output_tokens
        Minimum output tokens of a task. `output_tokens` is the maximum.
    """

    tasks: tuple[int, ...] = (8, 12)
    output_tokens: int = 48
    random_plans: int = 4
    repeats: int = 3
    least_output_tokens: int = 4


TINY = Settings(
    **dataclasses.asdict(serving_latency.TINY) | {"tasks": (6,), "repeats": 1, "output_tokens": 16}
)
"""Settings for tests, which are played in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Measure the inputs of predictions, and record problems, plans and predictions."""
    data = known(laboratory, settings, keep)
    random = np.random.default_rng(settings.seed)

    def differing(tasks: int) -> Ints:
        return random.integers(
            settings.least_output_tokens, settings.output_tokens, size=tasks, endpoint=True
        )

    for scene, problem_by in scenes(laboratory, data, settings, random, differing):
        for label in LABELS:
            static = dataclasses.replace(problem_by(label), output_lengths="known")
            both: tuple[Any, ...] = (static, ContinuousServingProblem(**static.shared_fields()))
            for problem in both:
                data["problems"].append(problem.to_dict())
                for names, plan in plans_of_methods(
                    (problem,), problem.plan_type, (OURS, *RIVALS), settings.seed
                ):
                    found = problem.evaluate(plan)
                    model = {
                        "total_seconds": found.objective,
                        "undisturbed_seconds": found.objective,
                    }
                    predicted = {"model": model}
                    if label != "autoregressive":
                        mean = simulate(problem, plan, replications=REPLICATIONS).mean
                        predicted["simulation"] = {
                            "total_seconds": mean,
                            "undisturbed_seconds": mean,
                        }
                    trial = {
                        "scene": scene,
                        "label": label,
                        "problem": len(data["problems"]) - 1,
                        "methods": names,
                    }
                    data["trials"].append(
                        {**trial, "plan": plan.to_dict(), "predicted": predicted, "measured": []}
                    )
    return data
