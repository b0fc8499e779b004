"""Predictions of a server's throughput, and their correction by measurements on that server.

Predictions are based on a sweep or on measured passes. To correct a sweep, its step durations are
multiplied by a factor that may depend on the load and the number of drafts, and the logit of the
acceptance rate is shifted. Measured passes are corrected by one factor per model and by an overhead
per step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from specopt.models.acceptance_lengths import Acceptance
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, read
from specopt.models.files import csv_text, json_text
from specopt.models.load import PARTS, Seen, name_of
from specopt.models.pass_time.pass_time import Which
from specopt.models.position_acceptance import PositionAcceptance
from specopt.models.sweep import Condition, Measurement, Point, Setup, Sweep
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.tuning.law import logit_rate, tokens_of
from specopt.solvers.speculation_table.tuning.predictions import Predictor

LOADS = (1, 2, 4, 8, 16, 32, 64)
"""Default numbers of concurrent requests to consider."""

ROUGH = 0.02
"""Standard deviation of the log errors that remain after the predictions are corrected."""

LEANS = np.array([1.0, 0.3, 0.1, 0.3, 0.1, 0.05])
"""Prior standard deviations of the corrections to the log step duration.

There is one for each column of `_leans`.
"""

LEVEL = 0.9
"""Coverage of all prediction bands and confidence intervals."""

BANDS: tuple[tuple[str, Which], ...] = (("rates", "fitted"), ("lower", "upper"), ("upper", "lower"))
"""Variants of acceptance rates and pass durations.

The three pairs yield the expected throughput, the lower end of its band, and the upper end.
"""

SHORTEST = 1e-12
"""Minimum duration of a step, in seconds. It applies if the lower limit of the passes is 0."""

HOLD = ROUGH / 0.5
"""Regularisation weight of the corrections to passes.

The regularisation keeps the factors by which pass durations are multiplied, and the overhead
relative to a pass, near their predicted values. The corresponding prior standard deviation is 0.5.
"""

COLUMNS = (
    "concurrency",
    "draft_length",
    "output_tokens_per_second",
    "mean_acceptance_length",
    "origin",
    "workload",
    "context_tokens",
)

Expected = tuple[float, float, float, float | None]
"""A prediction, as a tuple (mean, low, high, tokens).

The first three entries are the throughput in tokens per second and the ends of its band. The last
is the mean number of tokens per step with drafts, or None if it is unknown.
"""


@dataclass(frozen=True)
class _Row:
    concurrency: int
    draft_length: int | Literal["none"]
    tokens_per_second: float
    drafter: str = ""
    mode: str = "fixed"
    topk: int = 1
    low: float | None = None
    high: float | None = None


def planned(data: Mapping[str, Any], where: str) -> OfSweep:
    """Return the predictions and bands for the chosen option, as stored in a result of `tune`."""
    where = f"{where}.predictions"
    rows, option = read(list[Mapping[str, Any]], data["predictions"], where), data.get("option")
    chosen = [
        row
        for row in rows
        if row.get("draft_length") == "none" or (option or {}).items() <= row.items()
    ]
    runs, bands = [], {}
    for row in read(list[_Row], chosen, where):
        length = None if row.draft_length == "none" else row.draft_length
        point, setup = (
            Point(Condition(row.concurrency), length),
            Setup(row.drafter, row.mode, row.topk),
        )
        runs.append(Measurement(point, row.tokens_per_second, setup=setup))
        if row.low and row.high:
            bands[row.concurrency, length] = row.low, row.high
    return OfSweep(Sweep(tuple(runs)), where, bands)


class OfSweep:
    """Predictions based on a sweep with one drafter, mode, workload and context.

    Raises
    ------
    InvalidInput
        If the sweep contains several drafters, modes, workloads or contexts.
    """

    inputs = "mean_acceptance_length", "output_tokens_per_second", "rows of draft_length 0"

    def __init__(
        self, sweep: Sweep, where: str, bands: Mapping[Any, tuple[float, float]] | None = None
    ) -> None:
        cases = {(one.workload, one.context_tokens) for one in sweep.conditions}
        if len(sweep.setups) > 1 or len(cases) > 1:
            raise InvalidInput(
                f"{where}: expected one drafter, mode, workload and context, as on the server, "
                "got several; choose one with --draft and --workload"
            )
        self.sweep, (self.case,), self.bands = sweep, cases, bands or {}
        self.predictor = Predictor(sweep, LEVEL)
        self.loads = tuple(one.concurrency for one in sweep.conditions)

    def at(self, concurrency: int, length: int | None) -> Expected:
        """Return the prediction for a number of concurrent requests and a draft length."""
        point = Point(Condition(concurrency, *self.case), length)
        found = self.predictor.predict([point])
        mean, low, high = (float(of[0]) for of in (found.mean, found.low, found.high))
        band = self.bands.get((concurrency, length), (low, high))
        return mean, *band, self.predictor.acceptance_length(point)

    def corrected(self, seen: Sequence[Seen]) -> str:
        """Return the corrected sweep as CSV text.

        The rows of the measured loads come first, followed by the corrected rows.
        """
        places, (_, late, shifts) = [one.place for one in seen], misses(self, seen)
        rows, shift = _leans(places), shifts.sum() / max(1, np.count_nonzero(shifts))
        leans = np.linalg.solve(rows.T @ rows + np.diag((ROUGH / LEANS) ** 2), rows.T @ late)
        counts = self.predictor.has_acceptance
        table: list[list[Any]] = []
        for one in seen:
            tokens = one.load.acceptance_length or self.at(*one.place)[3]
            shown = tokens if one.place[1] and counts else ""
            table.append([*one.place, one.load.tokens_per_second, shown, "measured"])
        for run in self.sweep.measurements:
            place = run.point.condition.concurrency, run.point.draft_length
            if run.tokens_per_second and place not in places:
                drafts, before = np.array([[place[1] or 0.0], [run.acceptance_length or 1.0]])
                after = tokens_of(logit_rate(before, drafts) + shift, drafts)[0]
                speed = run.tokens_per_second * np.exp(-_leans([place]) @ leans) * after / before
                shown = float(after[0]) if place[1] and counts else ""
                table.append([*place, float(speed[0]), shown, "corrected"])
        own = vars(self.sweep.setups[0])
        lines = [
            [c, name_of(length), *rest, *self.case, *own.values()] for c, length, *rest in table
        ]
        return csv_text([(*COLUMNS, *own), *lines])


class OfPasses:
    """Predictions based on measured passes and on measured acceptance."""

    def __init__(self, data: Mapping[str, Any], where: str, acceptance: Acceptance) -> None:
        self.data, self.acceptance = data, acceptance
        self.runtimes = Runtimes.from_dict(data, where)
        self.contexts = np.array(self.runtimes.contexts)
        one = np.ones(())
        self.loads = tuple(
            b for b in LOADS if self.runtimes.verify.covers(b * one, one, self.contexts).all()
        )
        self.inputs = "acceptance", "passes, step_overhead_seconds", "zero_draft_cost"

    def at(self, concurrency: int, length: int | None) -> Expected:
        """Return the prediction for a number of concurrent requests and a draft length."""
        drafts, speeds = length or 0, []
        for rates, passes in BANDS:
            steps = self.runtimes.seconds(concurrency, drafts, passes)[length is not None]
            tokens = float(self.acceptance.expected_tokens(drafts, rates)[-1])
            step = max(float(steps[:, -1, -1].mean()), SHORTEST)
            speeds.append((concurrency * tokens / step, tokens))
        (mean, tokens), (low, _), (high, _) = speeds
        return mean, low, high, tokens if drafts else None

    def corrected(self, seen: Sequence[Seen]) -> str:
        """Return the corrected runtimes as JSON text.

        Pass durations are scaled by factors. The step overhead and the cost of steps with 0 drafts
        are replaced by estimates from the measurements.
        """
        from scipy.optimize import nnls

        places, overhead = [one.place for one in seen], self.runtimes.step_overhead_seconds
        steps = np.array([c * (self.at(c, k)[3] or 1.0) / self.at(c, k)[0] for c, k in places])
        batch, drafts = np.array([[c, k or 0.0] for c, k in places]).T[:, :, None]
        verify = self.runtimes.verify.seconds(batch, 1.0 + drafts, self.contexts).mean(axis=1)
        usual = verify.mean()  # the overhead is measured in units of this mean
        parts = np.stack([np.full_like(steps, usual), verify, steps - verify - overhead], axis=1)
        timed = np.array([k != 0 for _, k in places])
        before = np.array([overhead / usual, 1.0, 1.0])
        rows = parts * (timed / steps * np.exp(-misses(self, seen)[1]))[:, None]
        factors, _ = nnls(np.vstack([np.eye(3) * HOLD, rows]), np.append(before * HOLD, timed))
        found = {**self.data, "step_overhead_seconds": factors[0] * usual}
        for name, factor in zip(("verify", "draft", "drafter"), factors[[1, 2, 2]], strict=True):
            if name in found:
                found[name] = _scaled(found[name], factor)
        speeds = {one.place: one.load.tokens_per_second for one in seen}
        lost = [
            1.0 - speed / speeds[c, None]
            for (c, k), speed in speeds.items()
            if k == 0 and (c, None) in speeds
        ]
        if lost:
            found["zero_draft_cost"] = np.clip([min(lost), max(lost)], 0.0, 0.99).tolist()
        return json_text(found, indent=1) + "\n"


Prediction = OfSweep | OfPasses


def misses(prediction: Prediction, seen: Sequence[Seen]) -> Floats:
    """Compare the measured steps of each load with the predicted steps.

    Return three rows with one entry per load. The first is the log ratio of measured to predicted
    tokens per step, and the second is the log ratio of measured to predicted step durations. The
    third is the shift of the logit of the acceptance rate. If the predicted or the measured number
    of tokens per step is unknown, the two numbers are assumed to agree.
    """
    found = []
    for one in seen:
        speed, _, _, mean = prediction.at(*one.place)
        tokens = np.array([mean, one.load.acceptance_length or mean] if mean else [1.0, 1.0])
        shift = np.diff(logit_rate(tokens, np.full(2, one.place[1] or 1.0)))[0] if mean else 0.0
        longer = np.log(tokens[1] / tokens[0])
        found.append((longer, longer + np.log(speed / one.load.tokens_per_second), shift))
    return np.array(found).T


def _leans(places: Sequence[tuple[int, int | None]]) -> Floats:
    load, drafts = np.log([c for c, _ in places]), np.log1p([k or 0 for _, k in places])
    return np.stack([load**0, load, drafts > 0.0, drafts, load * drafts, load**2], axis=1)


def _scaled(data: Any, factor: float, timed: bool = False) -> Any:
    """Return JSON-like data in which all durations and their spreads are multiplied by `factor`."""
    if isinstance(data, Mapping):
        return {
            key: _scaled(one, factor, "seconds" in key or key == "spread")
            for key, one in data.items()
        }
    if isinstance(data, list):
        return [_scaled(one, factor, timed) for one in data]
    return data * factor if timed else data


def _acceptance(seen: Sequence[Seen]) -> dict[str, Any] | None:
    """Return the acceptance by position at the largest draft length, or None.

    It is computed from the engine's counters. The result is None if there are no counters.
    """
    counts = [one.load.counted for one in seen if any(one.load.counted)]
    longest = max(map(len, counts), default=0)
    if not longest:
        return None
    drafts, tokens, *accepted = np.sum([of for of in counts if len(of) == longest], axis=0)
    return PositionAcceptance.from_totals(drafts, tokens, accepted, LEVEL).to_dict()


def report(prediction: Prediction, seen: Sequence[Seen]) -> dict[str, Any]:
    """Return a report that compares predictions with measurements.

    The report contains the predicted and the measured throughput with intervals, and the correction
    factors. It also tells how often the order of two options is predicted correctly.
    """
    rows: list[dict[str, Any]] = []
    for one in seen:
        speed, low, high, _ = prediction.at(*one.place)
        measured = one.load.tokens_per_second
        rows.append(
            {
                "concurrency": one.concurrency,
                "draft_length": name_of(one.place[1]),
                "predicted": speed,
                "band": [low, high],
                "measured": measured,
                "interval": _limits(measured, one.load.deviation, PARTS),
                "error": speed / measured - 1.0,
                "requests": one.load.requests,
                "failed": one.load.failed,
            }
        )
    pairs = [(a, b) for a, b in combinations(rows, 2) if a["concurrency"] == b["concurrency"]]
    apart = [
        (a, b)
        for a, b in pairs
        if a["interval"][0] > b["interval"][1] or b["interval"][0] > a["interval"][1]
    ]
    right = sum(
        (a["predicted"] < b["predicted"]) == (a["measured"] < b["measured"]) for a, b in apart
    )
    return {
        "loads": rows,
        "median_error": float(np.median([abs(row["error"]) for row in rows])),
        "order": {"pairs": len(pairs), "separated": len(apart), "right": right},
        "factors": _factors(prediction, seen),
        "acceptance": _acceptance(seen),
        "notes": [f"concurrency {one.concurrency}: {one.load}" for one in seen if one.load.failed],
    }


def _factors(prediction: Prediction, seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """Return the ratios of measured to predicted quantities, by draft length.

    The quantities are the duration of a step and the number of tokens per step. Each entry contains
    a confidence interval for the mean ratio, and the resulting relative change in throughput.
    """
    found = []
    for length in dict.fromkeys(one.place[1] for one in seen):
        group = [one for one in seen if one.place[1] == length]
        tokens, late, _ = misses(prediction, group)
        noise = np.mean([one.load.deviation for one in group])
        of_tokens, *of_steps = prediction.inputs
        for quantity, logs, sign, source in (
            ("tokens", tokens, 1, of_tokens),
            ("seconds", late, -1, of_steps[length == 0]),
        ):
            if logs.any():
                mean = float(np.exp(logs.mean()))
                deviation = np.hypot(logs.std(), noise) / len(logs) ** 0.5
                found.append(
                    {
                        "of_a_step": quantity,
                        "draft_length": name_of(length),
                        "factor": mean,
                        "interval": _limits(mean, deviation, len(logs)),
                        "output": mean**sign - 1.0,
                        "in": source,
                    }
                )
    return found


def _limits(mean: float, deviation: float, parts: int) -> list[float]:
    """Return a confidence interval for a mean, given the standard error of its logarithm."""
    from scipy.stats import t

    reach = float(np.exp(min(300.0, t.ppf(0.5 + 0.5 * LEVEL, max(1, parts - 1)) * deviation)))
    return [mean / reach, mean * reach]
