"""Draft lengths from measured throughput: error, coverage and regret on real sweeps, and the
requested points on drawn ones.

Real sweeps are not part of the project. ``SPECOPT_SWEEPS=FOLDER`` names a folder with
``specbundle.json`` (SpecForge, ``docs/spec_bundle``). Either one benchmark of a model is withheld
except for one point, or all of its points with one draft length, and these are predicted from the
others.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from table import Benchmark, Row

from specopt.instances.sweeps import read_sweeps
from specopt.models.sweep import Condition, Measurement, Point, Setup, Sweep
from specopt.solvers.speculation_table.schedule import Schedule
from specopt.solvers.speculation_table.tuning.decision import decide
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.predictions import Predictor
from specopt.solvers.speculation_table.tuning.tuner import Tuner

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.drawn_sweeps import CONCURRENCIES, OPTIONS, drawn_table, sweep_of

LENGTHS = (None, 3, 5, 7)
SPEED_GRID = (None, 0, 1, 3, 5)


def lost(table: dict[Point, Measurement], schedule: Schedule) -> list[float]:
    """Return the true share of throughput that a schedule loses, by concurrency."""
    shares = []
    for concurrency in CONCURRENCIES:
        speeds = {
            option: _speed(table[Point(Condition(concurrency), option)]) for option in OPTIONS
        }
        shares.append(1.0 - speeds[schedule.at(concurrency)] / max(speeds.values()))
    return shares


def asking(smoke: bool) -> list[Row]:
    """Compare the points requested on complete tables with the full grid and with K in {0, 1, 3, 5}
    everywhere.
    """
    asked, regrets, rivals, fulls, seconds, within = [], [], [], [], 0.0, []
    most = 4 if smoke else 63
    for seed in range(1 if smoke else 60):
        table = drawn_table(seed)
        tuner, count = Tuner(CONCURRENCIES, range(8), regret=0.02), 0
        start = time.perf_counter()
        while count < most and (points := tuner.ask()):
            found = table[points[0]]
            tuner.tell(points[0], _speed(found), found.acceptance_length)
            count += 1
        tuning = tuner.result()
        seconds += time.perf_counter() - start
        asked.append(count)
        losses = lost(table, tuning.schedule)
        regrets.append(max(losses))
        within += [
            loss <= tuning.regret(c)[0] + 1e-9
            for c, loss in zip(CONCURRENCIES, losses, strict=True)
        ]
        for options, into in ((SPEED_GRID, rivals), (OPTIONS, fulls)):
            into.append(
                max(lost(table, decide(Predictor(sweep_of(table, options)), Goal()).schedule))
            )
    grid, few = len(OPTIONS) * len(CONCURRENCIES), len(SPEED_GRID) * len(CONCURRENCIES)
    better = np.mean(np.array(regrets) <= np.array(rivals) + 1e-9)

    def shares(values: list[float]) -> str:
        return f"{100 * np.mean(values):.2f} % mean, {100 * max(values):.1f} % worst"

    return [
        Row(
            f"points asked for a certified regret of 2 % (of {grid})",
            f"{np.mean(asked):.0f} mean, {min(asked)}-{max(asked)}",
            f"< {grid}",
            max(asked) < grid,
        ),
        Row("largest regret in truth, asked points", shares(regrets)),
        Row(f"the same, the full grid of {grid}", shares(fulls)),
        Row(f"the same, K in {{0, 1, 3, 5}} and none at every load ({few} points)", shares(rivals)),
        Row(
            "tables on which asking loses no more than that grid",
            f"{100 * better:.0f} %",
            "100 %",
            better == 1.0,
        ),
        Row(
            "loads at which the regret lies within the certified bound",
            f"{100 * np.mean(within):.0f} %",
            ">= 90 %",
            bool(np.mean(within) >= 0.9),
        ),
        Row("seconds per table", f"{seconds / len(asked):.1f} s"),
    ]


@dataclass
class Score:
    """The accuracy of predictions of withheld points."""

    inside: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    regrets: list[float] = field(default_factory=list)

    def add(
        self, predictor: Predictor, hidden: list[Measurement], choices: list[Measurement]
    ) -> None:
        """Predict the withheld points, and choose among all points of a benchmark."""
        found = predictor.predict([m.point for m in hidden])
        truth = np.array([_speed(m) for m in hidden])
        self.inside += ((found.low <= truth) & (truth <= found.high)).tolist()
        every = predictor.predict([m.point for m in choices])
        speeds = np.array([_speed(m) for m in choices])
        self.errors += np.abs(every.mean / speeds - 1.0).tolist()
        self.regrets.append(1.0 - float(speeds[int(np.argmax(every.mean))] / speeds.max()))


def real(smoke: bool) -> list[Row]:
    """Withhold benchmarks and draft lengths of the SpecForge bundle, if it is available."""
    folder = os.environ.get("SPECOPT_SWEEPS")
    if folder is None:
        return [Row("real sweeps", "not run: SPECOPT_SWEEPS names no folder")]
    groups = list(_groups(Path(folder) / "specbundle.json"))[: 1 if smoke else None]
    rows = []
    for batch in (1, 8):
        mine = [
            g
            for g in groups
            if g[0].point.condition.concurrency == batch and len(_workloads(g)) >= 3
        ]
        for text, timed in (("throughput and acceptance", True), ("acceptance alone", False)):
            score = Score()
            for group in mine:
                for name in _workloads(group):
                    own = [m for m in group if m.point.condition.workload == name]
                    rest = [m for m in group if m.point.condition.workload != name]
                    (one,) = [m for m in own if m.point.draft_length == 3]
                    kept = one if timed else Measurement(one.point, None, one.acceptance_length)
                    hidden = [m for m in own if m is not one or not timed]
                    score.add(Predictor(Sweep((*rest, kept))), hidden, own)
            rows += _score_rows(
                f"batch {batch}, a benchmark held out but for its {text} at K = 3",
                score,
                batch,
                timed,
            )
        fixed, affine = _rivals(mine)
        rows.append(Row(f"batch {batch}, regret of K = 3 everywhere", fixed))
        rows.append(
            Row(f"batch {batch}, affine step time from the others, acceptance as measured", affine)
        )
    score = Score()
    for group in groups:
        hidden = [m for m in group if m.point.draft_length == 5]
        score.add(
            Predictor(Sweep(tuple(m for m in group if m.point.draft_length != 5))), hidden, hidden
        )
    rows += [*_robust(groups), _replayed(groups)]
    rows.append(_coverage("K = 5 held out everywhere", score))
    rows.append(
        Row(
            "K = 5 held out everywhere: error of throughput",
            f"{100 * np.mean(score.errors):.1f} % mean",
        )
    )
    return rows


def _robust(groups: list[list[Measurement]]) -> list[Row]:
    """Return how often `robust` recommends an option that was measured to be slower than no
    speculation.
    """
    taken = slower = silent = 0
    for group in groups:
        speeds = {m.point: _speed(m) for m in group}
        predictor = Predictor(Sweep(tuple(group)))
        for name in (None, *_workloads(group)):
            schedule = decide(predictor, Goal(robust=True, workload=name)).schedule
            silent += not schedule.speculates
            for point in speeds:
                drafts = schedule.at(point.condition.concurrency)
                if point.draft_length == drafts is not None and name in (
                    None,
                    point.condition.workload,
                ):
                    taken += 1
                    slower += speeds[point] < speeds[Point(point.condition, None)]
    figure = f"{slower} of {taken} measured points ({silent} tables leave speculation out)"
    return [Row("robust tables slower than no speculation", figure, "0", slower == 0)]


def _replayed(groups: list[list[Measurement]]) -> Row:
    """Return the cost and loss of requesting points that the bundle answers, for all benchmarks of
    a model served together.
    """
    asked, losses, grid = [], [], 0
    for group in groups:
        table = {m.point: m for m in group}
        (concurrency,) = {p.condition.concurrency for p in table}
        lengths = [k for k in LENGTHS if k]
        tuner = Tuner(
            [concurrency], lengths, cases=[(name, 0) for name in _workloads(group)], regret=0.02
        )
        while points := [p for p in tuner.ask() if p in table]:  # 0 drafts were not measured
            found = table[points[0]]
            tuner.tell(points[0], _speed(found), found.acceptance_length)
        asked.append(len({m.point for m in tuner.measurements}) / len(table))
        grid += len(table)
        mean = {
            k: 1.0 / np.mean([1.0 / _speed(m) for m in group if m.point.draft_length == k])
            for k in LENGTHS
        }
        losses.append(1.0 - mean[tuner.result().schedule.at(concurrency)] / max(mean.values()))
    figure = (
        f"{100 * np.mean(asked):.0f} % of the points asked, {100 * max(losses):.1f} % worst regret"
    )
    return Row(
        f"asked for 2 % on {len(groups)} models and drafts ({grid} points)",
        figure,
        "<= 2 %",
        max(losses) <= 0.02,
    )


def _score_rows(subject: str, score: Score, batch: int, timed: bool) -> list[Row]:
    error, mean, worst = (
        100 * np.mean(score.errors),
        100 * np.mean(score.regrets),
        100 * max(score.regrets),
    )
    target = ("<= 6 %", bool(error <= 6.0)) if batch == 8 else ("", None)
    return [
        Row(f"{subject}: error of throughput", f"{error:.1f} % mean", *target),
        Row(
            f"{subject}: regret",
            f"{mean:.2f} % mean, {worst:.2f} % worst",
            "<= 0.5 % mean, <= 5 % worst",
            bool(mean <= 0.5 and worst <= 5.0),
        ),
        _coverage(subject, score),
    ]


def _coverage(subject: str, score: Score) -> Row:
    share = float(np.mean(score.inside))
    figure = f"{100 * share:.1f} % of {len(score.inside)}"
    return Row(f"{subject}: inside bands of 90 %", figure, "85-95 %", 0.85 <= share <= 0.95)


def _rivals(groups: list[list[Measurement]]) -> tuple[str, str]:
    """Return the regret of K = 3, and the error and regret of a straight line through the step
    times of the others.
    """
    fixed, errors, regrets = [], [], []
    for group in groups:
        for name in _workloads(group):
            own = [m for m in group if m.point.condition.workload == name]
            rest = [m for m in group if m.point.condition.workload != name]
            truth = np.array([_speed(m) for m in own])
            fixed.append(
                1.0 - _speed(next(m for m in own if m.point.draft_length == 3)) / truth.max()
            )
            slope, start = np.polyfit(
                [m.point.draft_length or 0 for m in rest], [_step(m) for m in rest], 1
            )
            guess = [
                _speed(m) * _step(m) / (start + slope * (m.point.draft_length or 0)) for m in own
            ]
            errors += np.abs(np.array(guess) / truth - 1.0).tolist()
            regrets.append(1.0 - float(truth[int(np.argmax(guess))] / truth.max()))
    return (
        f"{100 * np.mean(fixed):.1f} % mean, {100 * max(fixed):.1f} % worst",
        f"error {100 * np.mean(errors):.1f} % mean; regret {100 * np.mean(regrets):.1f} % mean, "
        f"{100 * max(regrets):.1f} % worst",
    )


def _groups(path: Path) -> Iterator[list[Measurement]]:
    """Yield the measurements of each model with each drafter, for the benchmarks that have all
    draft lengths.
    """
    bundle = json.loads(path.read_text())
    for model, benchmarks in bundle.items():
        names = {
            m["Name"] for b in benchmarks.values() for run in b["results"] for m in run["metrics"]
        }
        for draft in sorted(name for name in names if "EAGLE3" not in name.split()):
            chains = read_sweeps([path], model=model, draft=draft).of(Setup(draft))
            measured = {m.point: m for m in chains.measurements}
            complete = {
                p.condition
                for p in measured
                if all(Point(p.condition, k) in measured for k in LENGTHS)
            }
            yield [
                m
                for p, m in measured.items()
                if p.condition in complete and p.draft_length in LENGTHS
            ]


def _workloads(group: list[Measurement]) -> list[str]:
    return sorted({m.point.condition.workload for m in group})


def _speed(measurement: Measurement) -> float:
    assert measurement.tokens_per_second is not None
    return measurement.tokens_per_second


def _step(measurement: Measurement) -> float:
    return (
        measurement.point.condition.concurrency
        * (measurement.acceptance_length or 1.0)
        / _speed(measurement)
    )


BENCHMARKS = (
    Benchmark("tuning from drawn tables", asking),
    Benchmark("tuning from real sweeps", real),
)
