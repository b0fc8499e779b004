"""Serving latency: plans of several methods, and random ones, under all three mechanisms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from specopt.measuring.measure import Settings as Grid
from specopt.models.fields import Floats, Ints
from specopt.models.pass_time import TabledRuntime
from specopt.models.problem import problem_type
from specopt.models.serving_data import MECHANISMS, Mechanism
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import step_schedule
from specopt.models.uplink import spectral_efficiency
from specopt.solvers.serving_latency.simulate import simulate
from testbed.calibration import Passes, acceptance_rate, fit_passes, measure_passes, tabled
from testbed.decoding import Sampling, differences
from testbed.experiments import plans_of_methods
from testbed.explanation import undisturbed_seconds
from testbed.pairs import draw_prompts
from testbed.pass_by_pass import predict_by_passes
from testbed.plays.fair_goodput import play as play_rounds
from testbed.plays.serving_latency import play
from testbed.processes import Laboratory
from testbed.records import Keep

KIND = ServingLatencyProblem.kind
OURS, RIVALS = "exact", ("algorithm-1", "heuristic-batching", "no-batching")

METHODS = (OURS, *RIVALS, "max-batching")
"""Methods whose plans are played under each mechanism that they support: ours, and those of the
paper.
"""

REPLICATIONS = 400

MEMORY_BYTES = 1e12
"""Ample memory, because time is what limits batches here."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the plays.

    Parameters
    ----------
    tasks
        Number of tasks of each scene.
    output_tokens
        Output tokens of every task.
    max_speculation_length
        Maximum number of drafts.
    random_plans
        Random plans per scene, in addition to those of the methods.
    repeats
        Number of plays of each plan.
    bandwidth_hz
        Bandwidth of the uplink that the tasks share.
    temperature
        Temperature of sampling.
    known_prompts, known_rounds
        Prompts, and rounds of each, that determine the acceptance rate.
    batch, prefill_tokens, new_tokens, cached_tokens, passes
        Grid of measured passes, and number of measurements of each.
    seed
        Seed of all random numbers.
    """

    tasks: tuple[int, ...] = (8, 12)
    output_tokens: int = 12
    max_speculation_length: int = 4
    random_plans: int = 3
    repeats: int = 5
    bandwidth_hz: float = 2e6
    temperature: float = 0.0
    known_prompts: int = 16
    known_rounds: int = 8
    batch: tuple[int, ...] = (1, 2, 4, 8, 16)
    prefill_tokens: tuple[int, ...] = (16, 48)
    new_tokens: tuple[int, ...] = (1, 2, 3, 5)
    cached_tokens: tuple[int, ...] = (32, 64)
    passes: int = 5
    seed: int = 0


TINY = Settings(
    tasks=(4, 6),
    repeats=2,
    output_tokens=8,
    random_plans=2,
    bandwidth_hz=2e5,
    known_prompts=8,
    known_rounds=4,
    batch=(1, 2, 4),
    prefill_tokens=(8, 24),
    new_tokens=(1, 3),
    cached_tokens=(16,),
    passes=3,
)
"""Settings for tests, which are played in seconds."""


def known(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Measure the inputs of predictions. Return them, with empty entries for problems and plans."""
    grids = (
        Grid(
            batch=settings.batch,
            new_tokens=settings.prefill_tokens,
            cached_tokens=(0,),
            repeats=2,
            warm_up=1,
        ),
        Grid(
            batch=settings.batch,
            new_tokens=settings.new_tokens,
            cached_tokens=settings.cached_tokens,
            repeats=settings.passes,
            warm_up=1,
        ),
    )
    workers = (laboratory.draft, laboratory.verify)
    passes = keep(
        "passes", lambda: {worker.side: measure_passes(worker, grids) for worker in workers}
    )
    prompts = draw_prompts(
        laboratory.pair, settings.known_prompts, played=False, seed=settings.seed
    )
    length, sampling = (
        settings.max_speculation_length,
        Sampling(temperature=settings.temperature, seed=settings.seed),
    )
    alike, rounds = [[length] * len(prompts)] * settings.known_rounds, settings.known_rounds
    accepted = keep(
        "accepted",
        lambda: (
            play_rounds(
                laboratory, alike, [[one] for one in prompts], per_prompt=rounds, sampling=sampling
            ).T
        ),
    )
    return {
        "models": {worker.side: worker.config.name for worker in workers},
        "passes": passes,
        "accepted": accepted,
        "problems": [],
        "prompts": [],
        "alone": [],
        "trials": [],
    }


def scenes(
    laboratory: Laboratory,
    data: dict[str, Any],
    settings: Settings,
    random: np.random.Generator,
    outputs_of: Callable[[int], Ints],
) -> Iterator[tuple[int, Callable[[Mechanism], ServingLatencyProblem]]]:
    """Record the prompts of every scene and their outputs alone. Yield the scene's number and its
    problem by mechanism.
    """
    pool = draw_prompts(laboratory.pair, sum(settings.tasks), played=True, seed=settings.seed)
    for scene, tasks in enumerate(settings.tasks):
        prompts, pool = pool[:tasks], pool[tasks:]
        outputs = outputs_of(tasks)
        data["prompts"].append(prompts)
        if settings.temperature == 0.0:
            pairs = zip(prompts, outputs.tolist(), strict=True)
            data["alone"].append(
                [laboratory.verify.greedy(prompt, count) for prompt, count in pairs]
            )
        snr = random.uniform(2.0, 20.0, size=tasks)
        yield scene, partial(problem_of, laboratory, data, settings, prompts, outputs, snr)


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Measure the inputs of predictions, and record problems, plans and predictions."""
    data = known(laboratory, settings, keep)
    data["rest"] = keep("rest", lambda: measure_rest(laboratory, settings))
    random = np.random.default_rng(settings.seed)
    alike = partial(np.full, fill_value=settings.output_tokens)
    for scene, problem_by in scenes(laboratory, data, settings, random, alike):
        for mechanism in MECHANISMS:
            fitted = problem_by(mechanism)
            problem = measured_form(fitted, data)
            place = len(data["problems"])
            data["problems"].append(problem.to_dict())
            for names, plan in plans_of(problem, fitted, settings, random):
                trial = {
                    "scene": scene,
                    "label": mechanism,
                    "problem": place,
                    "methods": names,
                    "plan": plan.to_dict(),
                }
                predicted = predict(problem, fitted, plan, data["passes"])
                data["trials"].append({**trial, "predicted": predicted, "measured": []})
    return data


def measure_rest(laboratory: Laboratory, settings: Settings) -> dict[str, Passes]:
    """Time the passes that complete the grids of `known`: few tokens without a cache, and many with
    one.
    """
    few, many = settings.new_tokens, settings.prefill_tokens
    grids = (
        Grid(batch=settings.batch, new_tokens=few, cached_tokens=(0,), repeats=2, warm_up=1),
        Grid(
            batch=settings.batch,
            new_tokens=many,
            cached_tokens=settings.cached_tokens,
            repeats=1,
            warm_up=0,
        ),
    )
    return {
        worker.side: measure_passes(worker, grids)
        for worker in (laboratory.draft, laboratory.verify)
    }


def measured_form(problem: ServingLatencyProblem, data: dict[str, Any]) -> ServingLatencyProblem:
    """Return the problem with tables of measured passes, and the expected rounds of the slowest
    task of each batch.
    """
    draft, verify = (
        TabledRuntime(passes=tabled(data["passes"][side], data["rest"][side]))
        for side in ("draft", "verify")
    )
    return dataclasses.replace(
        problem, draft_runtime=draft, verify_runtime=verify, rounds="slowest"
    )


def fitted_form(problem: ServingLatencyProblem, passes: dict[str, Passes]) -> ServingLatencyProblem:
    """Return the problem with runtimes fitted to measured passes, and the rounds of Eq. 8."""
    return dataclasses.replace(problem, **_fitted(passes, problem.mechanism), rounds="mean")


def _fitted(passes: dict[str, Passes], mechanism: Mechanism | Literal["any"]) -> dict[str, Any]:
    """Return the runtimes by field, each fitted to the phases that a mechanism runs."""
    verified = "decode" if mechanism == "autoregressive" else "verify"
    phases = {"draft": "decode", "verify": verified}
    return {
        f"{side}_runtime": fit_passes(passes[side], ("prefill", phase)).runtime
        for side, phase in phases.items()
    }


def problem_of(
    laboratory: Laboratory,
    data: dict[str, Any],
    settings: Settings,
    prompts: list[list[int]],
    outputs: Ints,
    snr: Floats,
    mechanism: Mechanism,
) -> ServingLatencyProblem:
    """Return the problem of these prompts under a mechanism, based on the measurements."""
    return ServingLatencyProblem(
        input_tokens=np.array([len(prompt) for prompt in prompts]),
        output_tokens=outputs,
        snr=snr,
        bandwidth_hz=settings.bandwidth_hz,
        draft=laboratory.draft.config.exact,
        verify=laboratory.verify.config.exact,
        **_fitted(data["passes"], mechanism),
        draft_memory_bytes=MEMORY_BYTES,
        acceptance_rate=min(
            max(acceptance_rate(data["accepted"], settings.max_speculation_length), 1e-3), 1 - 1e-3
        ),
        max_speculation_length=settings.max_speculation_length,
        output_lengths="conservative",
        mechanism=mechanism,
    )


def plans_of(
    problem: ServingLatencyProblem,
    fitted: ServingLatencyProblem,
    settings: Settings,
    random: np.random.Generator,
) -> list[tuple[list[str], ServingLatencyPlan]]:
    """Return the plans of the methods that support this mechanism, each plan once, followed by
    random ones.

    Methods that do not accept tables plan with the fitted runtimes.
    """
    found = plans_of_methods((problem, fitted), ServingLatencyPlan, METHODS, settings.seed)
    drafts = problem.mechanism != "autoregressive"
    for number in range(settings.random_plans if drafts else settings.random_plans // 2):
        order = random.permutation(problem.tasks)
        cuts = np.sort(
            random.choice(np.arange(1, problem.tasks), size=random.integers(0, 4), replace=False)
        )
        shares = (
            random.uniform(0.8, 1.25, size=problem.tasks)
            * problem.input_tokens
            / spectral_efficiency(problem.snr)
        )
        plan = ServingLatencyPlan(
            speculation_length=(
                int(random.integers(1, settings.max_speculation_length + 1)) if drafts else 0
            ),
            batches=tuple(tuple(batch.tolist()) for batch in np.split(order, cuts)),
            bandwidth_share=shares / shares.sum(),
        )
        found.append(([f"random-{number + 1}"], plan))
    return found


def predict(
    problem: ServingLatencyProblem,
    fitted: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    passes: dict[str, Passes],
) -> dict[str, dict[str, float]]:
    """Return the predictions of the model, of the model without tables and slowest tasks, and of
    two simulations.

    One simulation draws acceptances for the fitted runtimes. The other one goes pass by pass.
    """
    found = problem.evaluate(plan)
    first = [
        found.terms["communication_seconds"] + slot.verify[1]
        for slot in step_schedule(problem, plan, 1)
        for _ in range(slot.tasks)
    ]
    totals = {
        "model": found.objective,
        "slowest-rounds": dataclasses.replace(fitted, rounds="slowest").evaluate(plan).objective,
        "pass-table": dataclasses.replace(problem, rounds="mean").evaluate(plan).objective,
        "fitted": fitted.evaluate(plan).objective,
        "passes": predict_by_passes(problem, plan, passes["draft"], passes["verify"]),
    }
    if problem.mechanism != "autoregressive":
        totals["simulation"] = simulate(fitted, plan, replications=REPLICATIONS).mean
    predicted = {
        name: {"total_seconds": one, "undisturbed_seconds": one} for name, one in totals.items()
    }
    predicted["model"] |= {
        "communication_seconds": found.terms["communication_seconds"],
        "first_token_seconds": float(np.mean(first)),
    }
    return predicted


def carry_out(
    laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
) -> dict[str, Any]:
    """Play a plan. At temperature 0, compare its output with the greedy output of the verify
    model.
    """
    settings = data["settings"]
    fields = data["problems"][trial["problem"]]
    problem: Any = problem_type(fields["kind"]).from_dict(fields)
    plan = problem.plan_type.from_dict(trial["plan"])
    sampling = Sampling(temperature=settings["temperature"], seed=settings["seed"])
    run = play(laboratory, problem, plan, data["prompts"][trial["scene"]], sampling)
    measured = {
        "total_seconds": run.seconds,
        "communication_seconds": run.communication_seconds,
        "first_token_seconds": float(run.first_token_seconds.mean()),
        "steps": run.steps,
        "accepted": run.accepted,
        "drafted": run.drafted,
        "draft": run.draft,
        "verify": run.verify,
    }
    measured["undisturbed_seconds"] = undisturbed_seconds(measured, problem.mechanism_of(plan))
    if data["alone"]:
        measured["differences"] = differences(run.outputs, data["alone"][trial["scene"]])
    return measured
