"""Verification batches: compare policies on the same requests, where each batch is a pass of the
verify model.

Requests arrive over time, with drafts to verify, a cache and a deadline. Whenever the verifier is
free, a method chooses the next batch from the times of the estimator. The clock then advances by
the real time of the pass. A request whose batch ends in time yields its expected tokens.
Predictions use the estimator's time for every pass instead. The pass is padded to the longest of
its drafts. Choosing takes no time on this clock.

Policies know times in one of two ways. Passes of equal sequences, as timed by `specopt measure`,
contain no information about padding, so batches that they fill up to a deadline are late. Passes of
random batches do, and the policy adds a margin that is sufficient for 90 % of them.

There are two predictors for every policy. `model` uses the same world for all policies: passes
padded as in the plays, fitted to random batches. Each pass is multiplied by a random factor, drawn
from the ratios of these passes to the fit, and `model` is the mean over many draws. The random
batches run between the plays, when the machine is in the same state as in the plays. The model
therefore predicts after the plays, although nothing is fitted to them. `belief` uses the times
known to the policy, so that plans with different labels have different worlds.
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
"""Policies that are played: ours, that of the paper, and the two baselines of the paper."""

AMPLE_BYTES = 1e12

PLAIN, MARGIN = "by equal passes", "by random batches"
REPLICATIONS = 40
COVERED = 0.9
"""Share of the passes measured beforehand that end within the margin."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the plays.

    Parameters
    ----------
    requests
        Number of requests of each scene.
    loads
        Loads of each scene, as the number of requests that arrive in the time of a pass of 8 of
        them.
    slack
        Minimum and maximum time from arrival to deadline, in units of this time.
    most_drafts
        Maximum draft length. Requests have 1 to `most_drafts` tokens.
    cached_tokens
        Minimum and maximum cached tokens of a request.
    acceptance_rate
        Acceptance rate assumed for the expected tokens of requests.
    repeats
        Number of plays of each policy.
    batch, new_tokens, measured_cached_tokens, passes
        Grid of measured passes, and number of measurements of each.
    random_batches, between
        Numbers of passes of random batches: those timed beforehand, which policies know, and those
        timed before each play, which only predictions know.
    seed
        Seed of all random numbers.
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
"""Settings for tests, which are played in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Time passes, and record requests and the beliefs of policies. `conclude` predicts."""
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
    """Return passes of random batches, with the new and cached tokens of each sequence, and
    seconds.
    """
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
    """Return the estimator of a label, and the factor that policies apply to its times."""
    if label == PLAIN:
        return fit_estimator(data["passes"]["verify"]), 1.0
    ragged = data["ragged"]
    estimator, ratios = _fitted(
        zip(ragged["new"], ragged["cached"], strict=True), ragged["seconds"]
    )
    return estimator, float(np.quantile(ratios, COVERED))


def _fitted(batches: Iterable[Any], seconds: list[float]) -> tuple[VerificationTime, Floats]:
    """Return the additive form fitted to passes of batches, by new and cached tokens, and the
    ratios of the measured seconds to it.
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
    """Return the yield of a policy if passes take the estimated times."""
    estimator, factor = known_to(label, data)
    return play(requests, estimator.scaled(factor, factor), method, estimator.seconds)[0]


def predict_padded(
    requests: dict[str, list[Any]],
    ragged: dict[str, list[Any]],
    method: str,
    known: tuple[VerificationTime, float],
    seed: int,
) -> dict[str, float]:
    """Return the mean yield of a policy if padded passes take the times of random batches,
    including their noise.

    Parameters
    ----------
    requests
        As `requests_of` returns them.
    ragged
        Passes of random batches.
    method, known
        The policy, and its knowledge of times.
    seed
        Seed of the noise.
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
    """Serve requests until no remaining one can be served. Return totals and batches.

    Parameters
    ----------
    requests
        As `requests_of` returns them.
    estimator
        Times known to the method.
    method
        Method that chooses each batch.
    seconds_of
        Function that returns the seconds of a batch from the new and cached tokens of its requests.
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
    )  # the batches measured beforehand have number 0
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
    """Return indices in `pending`."""
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
