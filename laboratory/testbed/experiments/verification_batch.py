"""Verification batches: policies against each other on the same requests, each batch a pass of the
verify model.

Requests arrive over time, with drafts to verify, a cache and a deadline. Whenever the verifier is
free, a method chooses the next batch from the estimator's times; the clock then moves on by what
the pass really takes. A request whose batch ends in time yields its expected tokens. Predicted is
the same with the estimator's time for every pass. The pass is padded to the longest of its drafts;
choosing takes no time on this clock.

What policies know of times is one of two things. Passes of equal sequences, as `specopt measure`
times them, say nothing of padding: batches that are filled up to a deadline by them are late.
Passes of random batches do; the policy adds a margin that 90 % of them keep.

Two predictors speak of every policy. `model` has one world for all: passes padded as they are
played, fitted to random batches. Each takes a factor drawn from what these passes took over the
fit; `model` is the mean over many draws. These random batches run between the plays, when the
machine is in the state in which it plays: it predicts after the plays, though nothing is fitted to
them. `belief` takes what the policy knows for what passes take: plans of different labels then have
different worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.api.solve import solve
from specopt.measuring.measure import Settings as Grid
from specopt.models.acceptance import expected_tokens
from specopt.models.fields import Floats, Ints, parse
from specopt.models.pass_time import VerificationTime, features
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from testbed.calibration import fit_estimator, measure_passes
from testbed.processes import Laboratory
from testbed.records import Keep

KIND = VerificationBatchProblem.kind
OURS, RIVALS = "pareto", ("algorithm-1", "edf", "fcfs")

METHODS = (OURS, *RIVALS)
"""The policies: ours, the paper's, and the two that it was compared with."""

AMPLE_BYTES = 1e12

PLAIN, MARGIN = "by equal passes", "by random batches"
REPLICATIONS = 40
COVERED = 0.9
"""Share of the passes measured beforehand that end within the margin."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is played.

    Parameters
    ----------
    requests
        Of each scene.
    loads
        Of each scene: requests that arrive in the time of a pass of 8 of them.
    slack
        Deadlines after arrival, least and most, in such times.
    most_drafts
        Longest draft; requests have 1 to `most_drafts` tokens.
    cached_tokens
        Least and most cached tokens of a request.
    acceptance_rate
        Assumed in what requests are expected to yield.
    repeats
        How often each policy is played.
    batch, new_tokens, measured_cached_tokens, passes
        The grid of measured passes, and how often each is timed.
    random_batches, between
        Passes of random batches that are timed beforehand, which policies know, and before each
        play, which only predictions know.
    seed
        Of everything random.
    """

    requests: int = 80
    loads: tuple[float, ...] = (6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0)
    slack: tuple[float, float] = (1.2, 4.0)
    most_drafts: int = 4
    cached_tokens: tuple[int, int] = (32, 160)
    acceptance_rate: float = 0.5
    repeats: int = 3
    batch: tuple[int, ...] = (1, 2, 4, 8, 12)
    new_tokens: tuple[int, ...] = (2, 3, 5)
    measured_cached_tokens: tuple[int, ...] = (32, 160)
    passes: int = 3
    random_batches: int = 40
    between: int = 3
    seed: int = 0


TINY = Settings(
    requests=20,
    loads=(8.0, 14.0),
    repeats=2,
    batch=(1, 2, 4),
    new_tokens=(2, 5),
    measured_cached_tokens=(8, 64),
    cached_tokens=(8, 64),
)
"""Settings that tests play in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Time passes, and lay down requests and what policies believe; `conclude` predicts."""
    grid = Grid(
        batch=settings.batch,
        new_tokens=settings.new_tokens,
        cached_tokens=settings.measured_cached_tokens,
        repeats=settings.passes,
        warm_up=1,
    )
    passes = keep("passes", lambda: {"verify": measure_passes(laboratory.verify, (grid,))})
    random = np.random.default_rng((settings.seed, len(settings.loads)))
    ragged = keep(
        "ragged", lambda: measure_ragged(laboratory, settings, random, settings.random_batches)
    )
    data: dict[str, Any] = {
        "models": {"verify": laboratory.verify.config.name},
        "passes": passes,
        "ragged": ragged,
        "trials": [],
    }
    estimator, _ = known_to(MARGIN, data)
    data["requests"] = [
        requests_of(estimator, settings, scene) for scene in range(len(settings.loads))
    ]
    for scene, requests in enumerate(data["requests"]):
        for label in (PLAIN, MARGIN):
            for method in METHODS:
                predicted = {"belief": predict(requests, data, method, label)}
                trial = {
                    "scene": scene,
                    "label": label,
                    "methods": [method],
                    "predicted": predicted,
                }
                data["trials"].append({**trial, "measured": []})
    return data


def conclude(data: dict[str, Any]) -> None:
    """Predict every policy in the world of the passes that ran between the plays."""
    ragged = between(data)
    data["predicted_after_the_plays"] = ["model"]
    for trial in data["trials"]:
        requests, (method,) = data["requests"][trial["scene"]], trial["methods"]
        known, seed = known_to(trial["label"], data), data["settings"]["seed"]
        trial["predicted"]["model"] = predict_padded(requests, ragged, method, known, seed)


def between(data: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the passes of random batches that ran between the plays, in their order within each
    trial.
    """
    found = [one["ragged"] for trial in data["trials"] for one in trial["measured"]]
    return {
        name: [value for one in found for value in one[name]]
        for name in ("new", "cached", "seconds")
    }


def measure_ragged(
    laboratory: Laboratory, settings: Settings, random: np.random.Generator, count: int
) -> dict[str, list[Any]]:
    """Return passes of random batches: new and cached tokens of each, and seconds."""
    found: dict[str, list[Any]] = {"new": [], "cached": [], "seconds": []}
    for _ in range(count):
        size = int(random.integers(1, max(settings.batch) + 1))
        new = random.integers(2, settings.most_drafts + 2, size=size)
        cached = random.integers(
            settings.cached_tokens[0], settings.cached_tokens[1] + 1, size=size
        )
        found["seconds"].append(laboratory.verify.ask("ragged", new=new, cached=cached))
        found["new"].append(new.tolist())
        found["cached"].append(cached.tolist())
    return found


def known_to(label: str, data: dict[str, Any]) -> tuple[VerificationTime, float]:
    """Return the estimator of a label, and what policies multiply its times by."""
    if label == PLAIN:
        return fit_estimator(data["passes"]["verify"]), 1.0
    ragged = data["ragged"]
    estimator, ratios = _fitted(
        zip(ragged["new"], ragged["cached"], strict=True), ragged["seconds"]
    )
    return estimator, float(np.quantile(ratios, COVERED))


def _fitted(batches: Iterable[Any], seconds: list[float]) -> tuple[VerificationTime, Floats]:
    """Return the additive form fitted to passes of batches, by new and cached tokens, and seconds
    over it.
    """
    known = [(np.array(new), np.array(cached)) for new, cached in batches]
    columns = np.array([[part.sum() for part in features(*one)] for one in known]).T.tolist()
    passes = dict(
        zip(("batch_new_tokens", "batch_interactions", "batch_cached_tokens"), columns, strict=True)
    )
    estimator = fit_estimator(
        passes | {"phase": ["verify"] * len(known), "seconds_median": seconds}
    )
    return estimator, np.array(seconds) / [estimator.seconds(*one) for one in known]


def _padded(new: Any, cached: Any) -> tuple[Ints, Ints]:
    return np.full(len(new), np.max(new)), np.full(len(new), np.max(cached))


def predict(
    requests: dict[str, list[Any]], data: dict[str, Any], method: str, label: str
) -> dict[str, float]:
    """Return what a policy yields if passes take what is estimated."""
    estimator, factor = known_to(label, data)
    return play(requests, estimator.scaled(factor, factor), method, estimator.seconds)[0]


def predict_padded(
    requests: dict[str, list[Any]],
    ragged: dict[str, list[Any]],
    method: str,
    known: tuple[VerificationTime, float],
    seed: int,
) -> dict[str, float]:
    """Return the mean of what a policy yields if padded passes take what random batches took, with
    their noise.

    Parameters
    ----------
    requests
        As `requests_of` returns them.
    ragged
        Passes of random batches.
    method, known
        The policy, and what it knows of times.
    seed
        Of the noise.
    """
    (estimator, factor), random, totals = known, np.random.default_rng(seed), []
    world, ratios = _fitted(map(_padded, ragged["new"], ragged["cached"]), ragged["seconds"])
    believed = estimator.scaled(factor, factor)
    for _ in range(REPLICATIONS):
        totals.append(
            play(
                requests,
                believed,
                method,
                lambda *batch: world.seconds(*_padded(*batch)) * random.choice(ratios),
            )[0]
        )
    return {name: float(np.mean([one[name] for one in totals])) for name in totals[0]}


def requests_of(
    estimator: VerificationTime, settings: Settings, scene: int
) -> dict[str, list[float]]:
    """Return the requests of a scene, as columns."""
    random = np.random.default_rng((settings.seed, scene))
    many = settings.requests
    low, high = settings.cached_tokens
    drafts = random.integers(1, settings.most_drafts + 1, size=many)
    cached = random.integers(low, high + 1, size=many)
    unit = estimator.seconds(np.full(8, drafts.mean() + 1), np.full(8, cached.mean()))
    arrival = np.cumsum(random.exponential(unit / settings.loads[scene], size=many))
    return {
        "arrival_seconds": arrival.tolist(),
        "deadline_seconds": (arrival + unit * random.uniform(*settings.slack, size=many)).tolist(),
        "new_tokens": (drafts + 1).tolist(),
        "cached_tokens": cached.tolist(),
        "expected_tokens": expected_tokens(
            np.full(many, settings.acceptance_rate), drafts
        ).tolist(),
    }


def play(
    requests: dict[str, list[Any]],
    estimator: VerificationTime,
    method: str,
    seconds_of: Callable[[Any, Any], float],
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Serve requests until none is left that could be; return totals, and the batches.

    Parameters
    ----------
    requests
        As `requests_of` returns them.
    estimator
        What the method knows of times.
    method
        Chooses each batch.
    seconds_of
        What a batch takes, by new and cached tokens of its requests.
    """
    columns = {name: np.array(values) for name, values in requests.items()}
    arrival, deadline = columns["arrival_seconds"], columns["deadline_seconds"]
    waiting = np.ones(len(arrival), dtype=bool)
    now, tokens, busy = 0.0, 0.0, 0.0
    batches = []
    while waiting.any():
        pending = np.flatnonzero(waiting & (arrival <= now))
        waiting[pending[deadline[pending] <= now]] = False
        pending = pending[deadline[pending] > now]
        batch = (
            pending[_chosen(columns, pending, now, estimator, method)] if len(pending) else pending
        )
        if not len(batch):
            later = np.concatenate([arrival[arrival > now], deadline[pending]])
            if not len(later):
                break
            now = float(later.min())
            continue
        new, cached = columns["new_tokens"][batch], columns["cached_tokens"][batch]
        seconds = seconds_of(new, cached)
        now, busy = now + seconds, busy + seconds
        tokens += float(columns["expected_tokens"][batch][deadline[batch] >= now].sum())
        waiting[batch] = False
        batches.append({"requests": batch.tolist(), "seconds": seconds, "end": now})
    return {"tokens_on_time": tokens, "busy_seconds": busy}, batches


def carry_out(
    laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
) -> dict[str, Any]:
    """Time random batches, then play a policy with real passes."""
    settings = parse(Settings, data["settings"], "settings")
    number = 1 + sum(
        len(one["measured"]) for one in data["trials"]
    )  # those beforehand are number 0
    random = np.random.default_rng((settings.seed, len(settings.loads), number))
    ragged = measure_ragged(laboratory, settings, random, settings.between)

    def seconds_of(new: Any, cached: Any) -> float:
        found: float = laboratory.verify.ask("ragged", new=new, cached=cached)
        return found

    estimator, factor = known_to(trial["label"], data)
    requests, (method,) = data["requests"][trial["scene"]], trial["methods"]
    totals, batches = play(requests, estimator.scaled(factor, factor), method, seconds_of)
    return {**totals, "batches": batches, "ragged": ragged}


def _chosen(
    columns: dict[str, Any], pending: Any, now: float, estimator: VerificationTime, method: str
) -> Any:
    """Return places in `pending`."""
    problem = VerificationBatchProblem(
        now_seconds=now,
        memory_bytes=AMPLE_BYTES,
        expected_tokens=columns["expected_tokens"][pending],
        new_tokens=columns["new_tokens"][pending],
        cached_tokens=columns["cached_tokens"][pending],
        request_memory_bytes=np.zeros(len(pending)),
        deadline_seconds=columns["deadline_seconds"][pending],
        estimator=estimator,
    )
    plan = solve(problem, method).plan
    assert isinstance(plan, VerificationBatchPlan), "the empty batch is a plan"
    return plan.batch
