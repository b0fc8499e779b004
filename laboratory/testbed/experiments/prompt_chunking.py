"""Prompt chunking: chunks of several methods, and random ones, over links with several rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from testbed.cloud_delay import fit_cloud_delay
from testbed.decoding import differences
from testbed.experiments import plans_of_methods
from testbed.pairs import draw_prompts
from testbed.plays.prompt_chunking import play
from testbed.processes import Laboratory
from testbed.records import Keep

KIND = PromptChunkingProblem.kind
OURS, RIVALS = "exact", ("equation-3", "best-equal", "whole")

METHODS = (OURS, *RIVALS)
"""Methods whose plans are played: ours, that of the paper, and two simple ones."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the plays.

    Parameters
    ----------
    prompt_tokens
        Tokens of each scene's prompt.
    uplink_bits_per_second
        Rate of the uplink of each scene. The rate of the downlink is this rate times
        `downlink_factor`.
    downlink_factor, link_latency_seconds, message_overhead_seconds
        Other parameters of the link.
    random_plans
        Random chunks per scene, in addition to those of the methods.
    repeats
        Number of plays of each plan.
    sizes, passes
        Tokens of the chunks that are timed beforehand, and number of measurements of each.
    seed
        Seed of all random numbers.
    """

    prompt_tokens: tuple[int, ...] = (96, 160, 224)
    uplink_bits_per_second: tuple[float, ...] = (8e6, 2e6, 4e6)
    downlink_factor: float = 4.0
    link_latency_seconds: float = 0.02
    message_overhead_seconds: float = 0.01
    random_plans: int = 6
    repeats: int = 3
    sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 224)
    passes: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.prompt_tokens) != len(self.uplink_bits_per_second):
            raise InvalidInput(
                f"uplink_bits_per_second: expected {len(self.prompt_tokens)} entries, as in"
                f" prompt_tokens, got {len(self.uplink_bits_per_second)}"
            )


TINY = Settings(
    prompt_tokens=(24, 40),
    uplink_bits_per_second=(8e5, 4e5),
    random_plans=3,
    repeats=2,
    sizes=(1, 4, 16, 40),
)
"""Settings for tests, which are played in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Time the parts of the model, and record problems, plans and predictions."""
    done = max(settings.prompt_tokens) // 2

    def measure() -> dict[str, Any]:
        laboratory.play("layers", sizes=list(settings.sizes), done=done, repeats=settings.passes)
        device, cloud = laboratory.finish()
        return {"tokens": list(settings.sizes), "cached": done, **device, **cloud}

    data: dict[str, Any] = {
        "models": {
            "device": "first and last layers of the verify model",
            "cloud": "the layers between",
        },
        "layers": keep("layers", measure),
        "problems": [],
        "prompts": [],
        "alone": [],
        "trials": [],
    }
    random = np.random.default_rng(settings.seed)
    pool = [
        token
        for prompt in draw_prompts(laboratory.pair, 64, played=True, seed=settings.seed)
        for token in prompt
    ]
    for scene, (tokens, rate) in enumerate(
        zip(settings.prompt_tokens, settings.uplink_bits_per_second, strict=True)
    ):
        start = int(random.integers(len(pool) - tokens))
        data["prompts"].append(pool[start : start + tokens])
        data["alone"].append([laboratory.verify.greedy(data["prompts"][scene], 1)])
        data["problems"].append(
            problem_of(data["layers"], laboratory, settings, tokens, rate).to_dict()
        )
        problem = PromptChunkingProblem.from_dict(data["problems"][scene])
        for names, plan in plans_of(problem, settings, random):
            predicted = {"model": {"first_token_seconds": problem.evaluate(plan).objective}}
            trial = {
                "scene": scene,
                "label": "chunks",
                "problem": scene,
                "methods": names,
                "plan": plan.to_dict(),
            }
            data["trials"].append({**trial, "predicted": predicted, "measured": []})
    return data


def problem_of(
    layers: dict[str, Any], laboratory: Laboratory, settings: Settings, tokens: int, rate: float
) -> PromptChunkingProblem:
    """Return the problem of a prompt over a link, based on the measured times."""
    sizes = np.array(layers["tokens"], dtype=np.float64)
    per_token, overhead = np.polyfit(sizes, np.array(layers["shallow"]), 1)
    value_bytes = 8 if laboratory.pair == "tiny" else 4
    return PromptChunkingProblem(
        prompt_tokens=tokens,
        bytes_per_token=float(value_bytes * laboratory.verify.config.exact.hidden),
        uplink_bytes_per_second=rate / 8.0,
        downlink_bytes_per_second=settings.downlink_factor * rate / 8.0,
        cloud_delay=fit_cloud_delay(sizes, layers["middle"], knots=sizes).cloud_delay,
        background_tokens=0.0,
        pipeline_length=1,
        local_overhead_seconds=max(float(overhead), 0.0),
        local_seconds_per_token=max(float(per_token), 0.0),
        message_overhead_seconds=settings.message_overhead_seconds,
        link_latency_seconds=settings.link_latency_seconds,
        head_seconds=float(np.interp(tokens, sizes, layers["head"])),
        wait="none",
        download="all",
    )


def plans_of(
    problem: PromptChunkingProblem, settings: Settings, random: np.random.Generator
) -> list[tuple[list[str], PromptChunkingPlan]]:
    """Return the plans of the methods, each plan once, followed by random chunks."""
    found = plans_of_methods((problem,), PromptChunkingPlan, METHODS, settings.seed)
    for number in range(settings.random_plans):
        most = min(12, problem.prompt_tokens)
        cuts = np.sort(
            random.choice(
                np.arange(1, problem.prompt_tokens), size=random.integers(1, most), replace=False
            )
        )
        plan = PromptChunkingPlan(
            chunks=np.diff(np.concatenate([[0], cuts, [problem.prompt_tokens]]))
        )
        found.append(([f"random-{number + 1}"], plan))
    return found


def carry_out(
    laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
) -> dict[str, Any]:
    """Play a plan, and compare its first token with that of the verify model alone."""
    problem = PromptChunkingProblem.from_dict(data["problems"][trial["problem"]])
    plan = PromptChunkingPlan.from_dict(trial["plan"])
    run = play(laboratory, problem, plan, data["prompts"][trial["scene"]])
    return {
        "first_token_seconds": run.first_token_seconds,
        "device": run.device,
        "cloud": run.cloud,
        "differences": differences([[run.token]], data["alone"][trial["scene"]]),
    }
