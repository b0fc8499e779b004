"""What a sweep or measured passes predict of a server, and both with what the server did put in.

A sweep is corrected by a factor on the seconds of its steps, which may lean with the load and with drafts, and a shift
of the logit of its acceptance; passes by a factor on those of each model, and an overhead of every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.acceptance_lengths import Acceptance
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.files import csv_text, json_text
from specopt.models.pass_time.pass_time import Which
from specopt.models.sweep import Condition, Point, Sweep
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.tuning.predictions import Predictor, logit_rate, tokens_of

LOADS = (1, 2, 4, 8, 16, 32, 64)
"""In question where nothing says which."""

ROUGH = 0.02
"""How far a measured log may lie off a corrected one, noise aside."""

LEANS = np.array([1.0, 0.3, 0.1, 0.3, 0.1, 0.05])
"""How far log seconds of steps may be off, in standard deviations: all, and by each term of `_leans`."""

LEVEL = 0.9
"""Coverage of all bands and intervals."""

BANDS: tuple[tuple[str, Which], ...] = (("rates", "fitted"), ("lower", "upper"), ("upper", "lower"))
"""Acceptance and passes of an expected output, and of the ends of its band."""

SHORTEST = 1e-12
"""Seconds of a step at the least, where a limit of passes is no time at all."""

SCALES = 0.5
"""The same of factors on passes, and of the overhead as a share of a pass."""

COLUMNS = ("concurrency", "draft_length", "output_tokens_per_second", "mean_acceptance_length", "origin", "workload",
           "context_tokens")  # fmt: skip

Expected = tuple[float, float, float, float | None]
"""Predicted tokens per second, the ends of their band, and mean tokens of a step with drafts if known."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a server did under a load.

    Parameters
    ----------
    concurrency, configured
        The load, and the draft length that the engine is configured with; None: it does not speculate.
    draft_length, tokens_per_second, deviation
        Drafts of a step, the output, and the standard error of its logarithm, 0 if unknown.
    acceptance_length, drafts, draft_tokens, accepted_at
        Mean tokens of a step if known, and the engine's counters: accepted tokens by position.
    """

    concurrency: int
    configured: int | None
    draft_length: int | None
    tokens_per_second: float
    deviation: float
    acceptance_length: float | None
    drafts: float
    draft_tokens: float
    accepted_at: tuple[float, ...]

    @property
    def place(self) -> tuple[int, int | None]:
        """Load and drafts of a step."""
        return self.concurrency, self.draft_length


class OfSweep:
    """What a sweep of one drafter, workload and context predicts; `InvalidInput` if there are several."""

    inputs = "mean_acceptance_length", "output_tokens_per_second", "rows of draft_length 0"

    def __init__(self, sweep: Sweep, where: str) -> None:
        cases = {(one.workload, one.context_tokens) for one in sweep.conditions}
        if len(sweep.setups) > 1 or len(cases) > 1:
            raise InvalidInput(f"{where}: expected one drafter, mode, workload and context, as the server has, "
                               "got several; --draft and --workload take one")  # fmt: skip
        self.sweep, (self.case,) = sweep, cases
        self.predictor = Predictor(sweep, LEVEL)
        self.loads = tuple(one.concurrency for one in sweep.conditions)

    def at(self, concurrency: int, length: int | None) -> Expected:
        """Return what is predicted of a load and a draft length."""
        point = Point(Condition(concurrency, *self.case), length)
        found = self.predictor.predict([point])
        return *np.array([found.mean, found.low, found.high])[:, 0].tolist(), self.predictor.acceptance_length(point)

    def corrected(self, seen: Sequence[Seen]) -> str:
        """Return the sweep as CSV: what was seen, and what that makes of the other rows."""
        _, late, shifts = misses(self, seen)
        rows = np.array([_leans(*one.place) for one in seen]) * _sure(seen)[:, None]
        leans = np.linalg.solve(rows.T @ rows + np.diag(LEANS**-2.0), rows.T @ (late * _sure(seen)))
        shift = shifts.sum() / max(1, np.count_nonzero(shifts))
        table: list[list[Any]] = [
            [*one.place, one.tokens_per_second, one.acceptance_length or self.at(*one.place)[3], "measured"]
            for one in seen
        ]
        for run in self.sweep.measurements:
            place, tokens = (run.point.condition.concurrency, run.point.draft_length), run.acceptance_length
            if run.tokens_per_second and all(place != one.place for one in seen):
                speed = run.tokens_per_second * np.exp(-leans @ _leans(*place))
                if place[1] and tokens:
                    drafts = np.array([float(place[1])])
                    tokens = tokens_of(logit_rate(np.array([tokens]), drafts) + shift, drafts)[0][0]
                    speed *= tokens / run.acceptance_length
                table.append([*place, speed, tokens, "corrected"])
        setup = vars(self.sweep.setups[0])
        lines = [[one[0], name_of(one[1]), one[2], one[3] or "", one[4], *self.case, *setup.values()] for one in table]
        return csv_text([(*COLUMNS, *setup), *lines])


class OfPasses:
    """What measured passes and acceptance predict."""

    def __init__(self, data: Mapping[str, Any], where: str, acceptance: Acceptance) -> None:
        self.data, self.acceptance, self.runtimes = data, acceptance, Runtimes.from_dict(data, where)
        self.contexts = np.array(self.runtimes.contexts)
        one = np.ones(())
        self.loads = tuple(b for b in LOADS if self.runtimes.verify.covers(b * one, one, self.contexts).all())
        self.inputs = "acceptance", "passes, step_overhead_seconds", "zero_draft_cost"

    def at(self, concurrency: int, length: int | None) -> Expected:
        """Return what is predicted of a load and a draft length."""
        drafts, speeds = length or 0, []
        for rates, passes in BANDS:
            steps = self.runtimes.seconds(concurrency, drafts, passes)[length is not None][:, -1, -1]
            tokens = float(self.acceptance.expected_tokens(drafts, rates)[-1])
            speeds.append((concurrency * tokens / max(float(steps.mean()), SHORTEST), tokens))
        (mean, tokens), (low, _), (high, _) = speeds
        return mean, low, high, tokens if drafts else None

    def corrected(self, seen: Sequence[Seen]) -> str:
        """Return the runtimes as JSON, with factors on the passes, an overhead and the cost of 0 drafts."""
        from scipy.optimize import nnls

        found, late = dict(self.data), misses(self, seen)[1]
        idle = np.array([one.draft_length == 0 for one in seen])
        parts = np.array([self._parts(*one.place) for one in seen])
        parts[:, 0] = usual = parts[:, 1].mean()  # the overhead in usual passes
        before = np.array([self.runtimes.step_overhead_seconds / usual, 1.0, 1.0])
        sure = _sure(seen) * ~idle
        rows = parts * (sure / (parts @ before * np.exp(late)))[:, None]
        factors, _ = nnls(np.vstack([np.eye(3) / SCALES, rows]), np.append(before / SCALES, sure))
        found["step_overhead_seconds"] = factors[0] * usual
        for name, factor in (("verify", factors[1]), ("draft", factors[2]), ("drafter", factors[2])):
            if name in found:
                found[name] = _scaled(found[name], factor)
        alone = {one.concurrency: off for one, off in zip(seen, late, strict=True) if one.draft_length is None}
        usual_cost = 1.0 - np.mean(self.runtimes.zero_draft_cost)
        lost = [
            1.0 - usual_cost * np.exp(alone.get(one.concurrency, 0.0) - off)
            for one, off in zip(seen, late, strict=True)
            if one.draft_length == 0
        ]
        if lost:
            found["zero_draft_cost"] = np.clip([min(lost), max(lost)], 0.0, 0.99).tolist()
        return json_text(found, indent=1) + "\n"

    def _parts(self, concurrency: int, length: int | None) -> list[float]:
        """Return a place for the overhead, and the seconds of verifying and of drafting in a step."""
        batch, drafts = np.array(float(concurrency)), np.array(float(length or 0))
        verify = self.runtimes.verify.seconds(batch, 1.0 + drafts, self.contexts)
        draft = self.runtimes.drafter.seconds(batch, drafts, self.contexts) if length else 0.0
        return [0.0, float(np.mean(verify)), float(np.mean(draft))]


Prediction = OfSweep | OfPasses


def misses(prediction: Prediction, seen: Sequence[Seen]) -> Floats:
    """Return logs of measured over predicted tokens and seconds of steps, and shifts of the logit of acceptance.

    Tokens of a step that are not known count as right.
    """
    found = []
    for one in seen:
        speed, _, _, mean = prediction.at(*one.place)
        tokens = np.array([mean or 1.0, one.acceptance_length or mean or 1.0])
        shift = np.diff(logit_rate(tokens, np.full(2, one.draft_length or 1.0)))[0] if mean else 0.0
        longer = np.log(tokens[1] / tokens[0])
        found.append((longer, longer + np.log(speed / one.tokens_per_second), shift))
    return np.array(found).T


def _sure(seen: Sequence[Seen]) -> Floats:
    return np.array([1.0 / np.hypot(ROUGH, one.deviation) for one in seen])


def _leans(concurrency: int, length: int | None) -> Floats:
    load, drafts = np.log(concurrency), np.log1p(length or 0)
    return np.array([1.0, load, bool(length), drafts, load * drafts, load**2])


def name_of(length: int | None) -> int | str:
    return "none" if length is None else length


def _scaled(data: Any, factor: float, timed: bool = False) -> Any:
    """Return data with the seconds in it multiplied: what stands in fields named so, and spreads of them."""
    if isinstance(data, Mapping):
        return {key: _scaled(one, factor, "seconds" in key or key == "spread") for key, one in data.items()}
    if isinstance(data, list):
        return [_scaled(one, factor, timed) for one in data]
    return data * factor if timed else data
