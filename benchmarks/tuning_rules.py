"""Tables of measured throughput with withheld parts: `tune` against four simple rules, and its
limits against simple ones.

Every table is thinned in up to 25 ways that keep the ends of draft length and load, and in up to 25
that withhold the longest or the shortest draft. Each way is predicted from what is kept. Regret is
the share of throughput that the best predicted option loses against the best measured one, over all
loads and workloads of the table, measured options only. Bands are judged on withheld cells: a cell
counts once however often it is withheld, and every table counts the same.

``SPECOPT_SWEEPS=FOLDER`` names a folder of CSV sweeps and bundles of SpecForge, whose tables are
added to those of the project. Drawn tables with noise of 0, 1 and 5 % stand beside them, apart:
there the regret of the best choice is known.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator
from table import Benchmark, Row

from specopt.instances.sweeps import read_sweeps
from specopt.models.fields import Floats
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from specopt.solvers.speculation_table.prices import FREE, Prices
from specopt.solvers.speculation_table.tuning.decision import decide
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.predictions import Predictor

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.drawn_sweeps import drawn_table

ROOT = Path(__file__).parents[1]
OWN = (
    "laboratory/engine/ngram.csv",
    "laboratory/engine/draft-model.csv",
    "instances/data/measured/vllm-cpu-ngram.csv",
)
WAYS = 25
ANCHOR = 0.93  # throughput with 0 drafts relative to no speculation
CONFIDENCE = 0.9
LEVEL = 0.01  # level of the test for low coverage of a table
DRAWS = 2_000
KEPT, INSIDE, ANY = (
    "ends of K kept",
    "an end of K withheld, lengths between measured ones",
    "an end of K withheld, all lengths",
)
KINDS = ((KEPT, 0.8), (INSIDE, 1.7), (ANY, 1.7))
"""Ways to thin a table and what may be taken, with the largest mean regret that is aimed at, in %.
"""
NOISES = (0.0, 0.01, 0.05)
DRAWN = 12

Curve = Callable[[Floats, Floats], Callable[[Floats], Floats]]

Table = Mapping[Point, Measurement]
Rule = Callable[[Table, Sequence[Point]], Floats]


@dataclass(frozen=True)
class Way:
    """A thinned table: the kept points, and whether the ends of the draft lengths are kept."""

    kept: dict[Point, Measurement]
    ends: bool


def ways(table: Table, seed: int, most: int = WAYS) -> list[Way]:
    """Return up to `most` ways to thin a table that keep the ends of its draft lengths, and equally
    many that drop one of them.
    """
    lengths = sorted({p.draft_length for p in table if p.draft_length})
    loads = sorted({p.condition.concurrency for p in table})
    rng = np.random.default_rng(seed)
    thin_loads = (
        [(loads[0], *some, loads[-1]) for some in _subsets(loads[1:-1])]
        if len(loads) > 1
        else [tuple(loads)]
    )
    found = []
    for ends in (True, False):
        if ends:
            thin = (
                [(lengths[0], *some, lengths[-1]) for some in _subsets(lengths[1:-1])]
                if len(lengths) > 1
                else []
            )
        else:
            thin = [
                some
                for some in _subsets(lengths)
                if len(some) > 1 and (some[0], some[-1]) != _ends(lengths)
            ]
        every = [
            (ks, cs)
            for ks in thin
            for cs in thin_loads
            if len(ks) < len(lengths) or len(cs) < len(loads)
        ]
        for k in sorted(rng.permutation(len(every))[:most]):
            ks, cs = every[k]
            kept = {
                p: m
                for p, m in table.items()
                if p.condition.concurrency in cs and (not p.draft_length or p.draft_length in ks)
            }
            found.append(Way(kept, ends))
    return found


def _ends(values: Sequence[int]) -> tuple[int, int]:
    return values[0], values[-1]


def _subsets(values: Sequence[int]) -> list[tuple[int, ...]]:
    return [
        some for size in range(len(values) + 1) for some in itertools.combinations(values, size)
    ]


# ---------------------------------------------------------------- the simple rules


def surface(curve: Curve) -> Rule:
    """Return a rule that is log-linear in load and has a curve in log(1 + K) with a fixed value at
    0 drafts.
    """

    def rule(kept: Table, wanted: Sequence[Point]) -> Floats:
        found = np.empty(len(wanted))
        for name in {(p.condition.workload, p.condition.context_tokens) for p in wanted}:
            mine = [
                m
                for m in kept.values()
                if (m.point.condition.workload, m.point.condition.context_tokens) == name
            ]
            loads = sorted({m.point.condition.concurrency for m in mine})
            at = [
                k
                for k, p in enumerate(wanted)
                if (p.condition.workload, p.condition.context_tokens) == name
            ]
            lengths = sorted({wanted[k].draft_length or 0 for k in at if wanted[k].draft_length})
            none, drafted = [], []
            for load in loads:
                speed = {
                    m.point.draft_length: np.log(speed_of(m))
                    for m in mine
                    if m.point.condition.concurrency == load
                }
                x = [np.log1p(k) for k in speed if k]
                y = [speed[k] for k in speed if k]
                none.append(speed.get(None, np.nan))
                if None in speed:
                    x, y = [0.0, *x], [speed[None] + np.log(ANCHOR), *y]
                order = np.argsort(x)
                drafted.append(curve(np.array(x)[order], np.array(y)[order])(np.log1p(lengths)))
            for k in at:
                point = wanted[k]
                column = (
                    none
                    if not point.draft_length
                    else [row[lengths.index(point.draft_length)] for row in drafted]
                )
                found[k] = np.interp(np.log(point.condition.concurrency), np.log(loads), column)
        return found

    return rule


def _quadratic(x: Floats, y: Floats) -> Callable[[Floats], Floats]:
    fitted = np.polynomial.Polynomial.fit(x, y, min(2, len(x) - 1)) if len(x) > 1 else None
    return fitted if fitted is not None else lambda at: np.full(len(at), y[0])


def _pchip(x: Floats, y: Floats) -> Callable[[Floats], Floats]:
    fitted = PchipInterpolator(x, y) if len(x) > 1 else None
    return lambda at: (
        fitted(np.clip(at, x[0], x[-1])) if fitted is not None else np.full(len(at), y[0])
    )


def nearest_load(kept: Table, wanted: Sequence[Point]) -> Floats:
    """Return the log throughput of the same option at the nearest kept load, or -inf if the option
    is not kept.
    """
    found = []
    for point in wanted:
        same = {
            p.condition.concurrency: m
            for p, m in kept.items()
            if p.draft_length == point.draft_length
            and p.condition.workload == point.condition.workload
        }
        nearest = min(
            same, key=lambda c: abs(np.log(c / point.condition.concurrency)), default=None
        )
        found.append(-np.inf if nearest is None else np.log(speed_of(same[nearest]) / nearest))
    return np.array(found)


def one_length(kept: Table, wanted: Sequence[Point]) -> Floats:
    """Return the mean log throughput of an option over all kept points, or -inf if it is not
    kept.
    """
    means = {}
    for option in {p.draft_length for p in kept}:
        means[option] = np.mean(
            [np.log(speed_of(m)) for p, m in kept.items() if p.draft_length == option]
        )
    return np.array([means.get(p.draft_length, -np.inf) for p in wanted])


RULES: dict[str, Rule] = {
    "quadratic in log(1 + K)": surface(_quadratic),
    "PCHIP in log(1 + K)": surface(_pchip),
    "nearest load": nearest_load,
    "one K": one_length,
}


def conformal(kept: Table) -> float:
    """Return the half width of the limits around the quadratic rule, from drafted cells that are
    left out one by one.
    """
    rule, misses = RULES["quadratic in log(1 + K)"], []
    for point, measurement in kept.items():
        rest = {p: m for p, m in kept.items() if p != point}
        if point.draft_length and any(p.condition == point.condition for p in rest):
            misses.append(abs(rule(rest, [point])[0] - np.log(speed_of(measurement))))
    rank = min(int(np.ceil(CONFIDENCE * (len(misses) + 1))), len(misses))
    return float(np.sort(misses)[rank - 1])


def speed_of(measurement: Measurement) -> float:
    """Return the throughput of a run, which must have one."""
    assert measurement.tokens_per_second is not None
    return measurement.tokens_per_second


# ---------------------------------------------------------------- tables


def real_tables() -> dict[str, Table]:
    """Return the measured tables of the project and of the folder given in the environment."""
    found = {Path(path).stem: table_of(read_sweeps([ROOT / path]).measurements) for path in OWN}
    folder = os.environ.get("SPECOPT_SWEEPS")
    for path in sorted(Path(folder).iterdir()) if folder else []:
        if path.suffix == ".csv":
            found |= {f"{path.stem}{name}": table for name, table in _csv_tables(path)}
        elif path.suffix == ".json":
            found |= dict(_bundle_tables(path))
    return {
        name: table
        for name, table in found.items()
        if len({p.draft_length for p in table if p.draft_length}) > 1
    }


def table_of(measurements: Sequence[Measurement]) -> Table:
    """Return measurements by point, without 0 drafts, because rules and predictions treat these
    differently.
    """
    return {m.point: m for m in measurements if m.point.draft_length != 0}


def _csv_tables(path: Path) -> Iterator[tuple[str, Table]]:
    """Yield the table of each drafter of a file. Rows over all workloads are dropped if workloads
    have their own rows.
    """
    lines = [line.split(",") for line in path.read_text().split()]
    names = lines[0]
    rows = [dict(zip(names, line, strict=True)) for line in lines[1:]]
    drafters = sorted({row.get("drafter", "") for row in rows} - {""}) or [""]
    for drafter in drafters:
        yield (
            f" {drafter}".rstrip(),
            table_of(
                [
                    Measurement(
                        Point(
                            Condition(int(row["concurrency"]), row.get("workload", "")),
                            None if row["draft_length"] == "none" else int(row["draft_length"]),
                        ),
                        float(row["output_tokens_per_second"]),
                    )
                    for row in rows
                    if row.get("drafter", "") in ("", drafter) and row.get("workload") != "all"
                ]
            ),
        )


def _bundle_tables(path: Path) -> Iterator[tuple[str, Table]]:
    """Yield the table of each model with each draft model, for the workloads and loads that have
    every length.
    """
    for model, benchmarks in json.loads(path.read_text()).items():
        names = {
            m["Name"] for b in benchmarks.values() for run in b["results"] for m in run["metrics"]
        }
        for draft in sorted(name for name in names if "EAGLE3" not in name.split()):
            measured = table_of(read_sweeps([path], model=model, draft=draft).measurements)
            lengths = (None, 3, 5, 7)
            whole = {
                p.condition
                for p in measured
                if all(Point(p.condition, k) in measured for k in lengths)
            }
            loads = {
                name: {c.concurrency for c in whole if c.workload == name}
                for name in {c.workload for c in whole}
            }
            every = max(loads.values(), key=len)
            table = {
                p: m
                for p, m in measured.items()
                if p.condition in whole
                and p.draft_length in lengths
                and loads[p.condition.workload] == every
            }
            yield f"{model} {draft}", table


def drawn_tables(noise: float, many: int) -> list[tuple[Table, Table]]:
    """Return drawn tables with noise and without acceptance lengths, and their true values."""
    found = []
    for seed in range(1000, 1000 + many):
        truth = table_of(list(drawn_table(seed).values()))
        rng = np.random.default_rng(seed)
        seen = {
            p: Measurement(p, speed_of(m) * float(np.exp(rng.normal(0.0, noise))))
            for p, m in truth.items()
        }
        found.append((seen, truth))
    return found


# ---------------------------------------------------------------- scores


@dataclass
class Score:
    """The results of a method on a table.

    Parameters
    ----------
    regrets
        Regrets of each way by kind (`KINDS`), as one share per load and workload.
    cells
        For every withheld point and each way that withheld it, whether it was within the limits,
        and the width of the limits.
    """

    regrets: dict[str, list[Floats]]
    cells: dict[Point, list[tuple[bool, float]]]

    @property
    def coverage(self) -> Floats:
        """Share of ways in which each cell was inside its limits."""
        return np.array([np.mean([held for held, _ in ways]) for ways in self.cells.values()])

    @property
    def width(self) -> float:
        """Median of the mean widths of the cells, in log throughput."""
        return float(
            np.median([np.mean([width for _, width in ways]) for ways in self.cells.values()])
        )

    @property
    def upper(self) -> float:
        """Upper confidence limit of the coverage, from a one-sided bootstrap over cells."""
        share = self.coverage
        drawn = np.random.default_rng(0).integers(len(share), size=(DRAWS, len(share)))
        return float(np.quantile(share[drawn].mean(axis=1), 1.0 - LEVEL))


Method = Callable[[dict[Point, Measurement], Sequence[Point]], tuple[Floats, Floats]]


def score(table: Table, truth: Table, method: Method, most: int) -> Score:
    """Return the score of a method, which predicts log throughput and half the width of its
    limits.
    """
    wanted = list(table)
    speeds = np.array([speed_of(truth[p]) for p in wanted])
    seen = np.log([speed_of(table[p]) for p in wanted])
    conditions = {p.condition for p in wanted}
    found = Score({kind: [] for kind, _ in KINDS}, {})
    for way in ways(table, 0, most):
        mean, half = method(way.kept, wanted)
        hidden = np.array([p not in way.kept for p in wanted])
        for k in np.flatnonzero(hidden & np.isfinite(half)):
            found.cells.setdefault(wanted[k], []).append(
                (bool(abs(seen[k] - mean[k]) <= half[k]), 2.0 * half[k])
            )
        # measured points keep their measured values
        mean = np.where(hidden, mean, seen)
        known = [p.draft_length for p in way.kept if p.draft_length]
        outside = [
            bool(p.draft_length) and not min(known) <= (p.draft_length or 0) <= max(known)
            for p in wanted
        ]
        for kind in (KEPT,) if way.ends else (INSIDE, ANY):
            judged = np.where(outside, -np.inf, mean) if kind == INSIDE else mean
            shares = []
            for condition in sorted(conditions):
                own = np.array([p.condition == condition for p in wanted])
                shares.append(1.0 - speeds[own][np.argmax(judged[own])] / speeds[own].max())
            found.regrets[kind].append(np.array(shares))
    return found


def predicted(kept: dict[Point, Measurement], wanted: Sequence[Point]) -> tuple[Floats, Floats]:
    """Return the predictions of `tune`."""
    found = Predictor(Sweep(tuple(kept.values())), CONFIDENCE).predict(wanted)
    return np.log(found.mean), 0.5 * np.log(found.high / found.low)


def by_rule(rule: Rule, bands: bool = True) -> Method:
    """Return a simple rule. Only the quadratic one has limits, which are conformal."""
    banded = rule is RULES["quadratic in log(1 + K)"] and bands
    return lambda kept, wanted: (
        rule(kept, wanted),
        np.full(len(wanted), conformal(kept) if banded else np.inf),
    )


def _mean(regrets: Mapping[str, list[Floats]], which: str | None) -> float:
    """Return the mean regret of the ways of a kind, or of all ways. It is NaN if there are none."""
    means = [
        float(way.mean())
        for kind, several in regrets.items()
        if which in (None, kind)
        for way in several
    ]
    return float(np.mean(means)) if means else float("nan")


def _regret(scores: Mapping[str, Score], kind: str) -> tuple[float, float]:
    """Return the mean over tables of the mean regret, and the largest regret at any load, in %."""
    worst = [float(way.max()) for one in scores.values() for way in one.regrets[kind]]
    return 100.0 * float(
        np.nanmean([_mean(one.regrets, kind) for one in scores.values()])
    ), 100.0 * max(worst)


def _written(found: tuple[float, float]) -> str:
    return f"{found[0]:.2f} % mean, {found[1]:.1f} % worst"


def rows_of(
    scores: Mapping[str, Score], rules: Mapping[str, Mapping[str, Score]], of: str
) -> list[Row]:
    """Return the rows of a set of tables: regrets next to those of the rules, and coverage next to
    that of the conformal limits.
    """
    rows = []
    for what, target in KINDS:
        found = _regret(scores, what)
        rows.append(
            Row(
                f"{of}, {what}: regret of tune",
                _written(found),
                f"<= {target} % mean",
                found[0] <= target,
            )
        )
        theirs = {name: _regret(by, what) for name, by in rules.items()}
        rows += [
            Row(f"{of}, {what}: regret of the rule {name}", _written(one))
            for name, one in theirs.items()
        ]
        best = min(one[0] for one in theirs.values())
        rows.append(
            Row(
                f"{of}, {what}: tune against the best rule",
                f"{found[0] - best:+.2f} %",
                "<= +0.1 %",
                found[0] - best <= 0.1,
            )
        )
    simple = rules["quadratic in log(1 + K)"]
    for name, by in (("tune", scores), ("a conformal band about the quadratic", simple)):
        share, width = (
            100.0 * float(np.mean([f(one) for one in by.values()])) for f in (_coverage, _width)
        )
        ours = by is scores
        rows.append(
            Row(
                f"{of}: withheld cells inside bands of 90 % of {name}",
                f"{share:.1f} %",
                "85-95 %" if ours else "",
                85.0 <= share <= 95.0 if ours else None,
            )
        )
        rows.append(Row(f"{of}: mean over tables of the median width of {name}", f"{width:.1f} %"))
    narrower = np.mean([_width(one) for one in scores.values()]) <= np.mean(
        [_width(one) for one in simple.values()]
    )
    low = [name for name, one in scores.items() if one.upper < 0.85]
    rows.append(
        Row(
            f"{of}: bands no wider than the conformal ones",
            "yes" if narrower else "no",
            "yes",
            bool(narrower),
        )
    )
    rows.append(
        Row(f"{of}: tables below 85 % at a level of 1 %", ", ".join(low) or "none", "none", not low)
    )
    return rows


def _coverage(one: Score) -> float:
    return float(one.coverage.mean())


def _width(one: Score) -> float:
    return one.width


def withheld(smoke: bool) -> list[Row]:
    """Withhold parts of measured and drawn tables."""
    most = 2 if smoke else WAYS
    real = real_tables()
    scores = {name: score(t, t, predicted, most) for name, t in real.items()}
    rules = {
        name: {n: score(t, t, by_rule(rule), most) for n, t in real.items()}
        for name, rule in RULES.items()
    }
    rows = rows_of(scores, rules, f"{len(real)} measured tables")
    for noise in NOISES[:1] if smoke else NOISES:
        drawn = drawn_tables(noise, 1 if smoke else DRAWN)
        ours = {str(k): score(*pair, predicted, most) for k, pair in enumerate(drawn)}
        theirs = {
            name: {str(k): score(*pair, by_rule(rule), most) for k, pair in enumerate(drawn)}
            for name, rule in RULES.items()
        }
        rows += rows_of(ours, theirs, f"{len(drawn)} drawn tables, noise {100 * noise:.0f} %")
    return rows


# ---------------------------------------------------------------- families

LEVELS = (0.5, 0.8, 0.9)
TOLERANCE = 6.0  # of a coverage, in percentage points
LOADS, LENGTHS, ALONE, TRANSFERS = (
    "several loads, loads withheld",
    "several loads, lengths withheld",
    "one load, lengths withheld",
    "a workload known by none and one length",
)
Case = tuple[str, dict[Point, Measurement], list[Point]]
"""The name of a table, what is kept of it, and what is withheld."""


def families(smoke: bool) -> dict[str, list[Case]]:
    """Return what is withheld of every measured table: every subset of the loads between the ends,
    every subset of the lengths (including the ends), every subset of the lengths at one load only,
    and each workload except for no speculation and one length.
    """
    found: dict[str, list[Case]] = {name: [] for name in (LOADS, LENGTHS, ALONE, TRANSFERS)}
    for name, table in real_tables().items():
        conditions = sorted({p.condition for p in table})
        loads = sorted({one.concurrency for one in conditions})
        workloads = sorted({one.workload for one in conditions})
        lengths = sorted({p.draft_length for p in table if p.draft_length})
        lacking = [set(some) for some in _subsets(lengths[1:-1]) if some]
        lacking += [{lengths[0]}, {lengths[-1]}]
        lacking = lacking[:WAYS]

        def case(
            hidden: list[Point],
            name: str = name,
            table: Table = table,
            only: Condition | None = None,
        ) -> Case:
            kept = {p: m for p, m in table.items() if only in (None, p.condition)}
            return name, {p: m for p, m in kept.items() if p not in hidden}, hidden

        for some in _subsets(loads[1:-1]) if len(loads) > 2 else []:
            if some:
                found[LOADS].append(case([p for p in table if p.condition.concurrency in some]))
        if len(loads) > 1:
            for gone in lacking:
                found[LENGTHS].append(case([p for p in table if p.draft_length in gone]))
        for one in conditions:
            own = [p for p in table if p.condition == one]
            for gone in lacking[: max(3, WAYS // len(conditions))]:
                found[ALONE].append(case([p for p in own if p.draft_length in gone], only=one))
        for workload in workloads if len(workloads) > 1 else []:
            for length in lengths:
                own = [p for p in table if p.condition.workload == workload]
                hidden = [p for p in own if p.draft_length not in (None, length)]
                found[TRANSFERS].append(case(hidden))
    return {name: cases[: 3 if smoke else None] for name, cases in found.items() if cases}


def chosen_by(kept: dict[Point, Measurement], condition: Condition) -> int | None:
    """Return the draft length that `tune` chooses at a load if tables are free."""
    goal = Goal(workload=condition.workload, prices=Prices(FREE, FREE))
    return decide(Predictor(Sweep(tuple(kept.values()))), goal).schedule.at(condition.concurrency)


def regrets_of(case: Case, table: Table, method: Method | None, family: str) -> list[float]:
    """Return the loss at every condition with withheld points. Without a method, it is that of
    `tune`, with its schedule at withheld loads.
    """
    _, kept, hidden = case
    lost = []
    for condition in sorted({p.condition for p in hidden}):
        own = [p for p in table if p.condition == condition and (p in kept or p in hidden)]
        speeds = {p.draft_length: np.log(speed_of(table[p])) for p in own}
        if method is None and family == LOADS:
            taken = chosen_by(kept, condition)
            taken = taken or None  # 0 drafts are free here, and were not measured
        else:
            mean, _ = (method or predicted)(kept, own)
            judged = [
                speeds[p.draft_length] if p in kept else x for p, x in zip(own, mean, strict=True)
            ]
            taken = own[int(np.argmax(judged))].draft_length
        lost.append(1.0 - float(np.exp(speeds[taken] - max(speeds.values()))))
    return lost


def coverage_of(cases: Sequence[Case], tables: Mapping[str, Table]) -> list[tuple[float, int]]:
    """Return the shares of withheld points inside the limits of `LEVELS`, and their number."""
    found = []
    for level in LEVELS:
        inside: list[bool] = []
        for name, kept, hidden in cases:
            bands = Predictor(Sweep(tuple(kept.values())), level).predict(hidden)
            truth = np.array([speed_of(tables[name][p]) for p in hidden])
            inside += ((bands.low <= truth) & (truth <= bands.high)).tolist()
        found.append((100.0 * float(np.mean(inside)), len(inside)))
    return found


def withheld_families(smoke: bool) -> list[Row]:
    """Report the regret for withheld loads, lengths or a workload, next to the rules, and the
    coverage of limits of 50, 80 and 90 %.
    """
    tables, rows = real_tables(), []
    for family, cases in families(smoke).items():
        methods: dict[str, Method | None] = {"tune": None}
        methods |= {name: by_rule(rule, bands=False) for name, rule in RULES.items()}
        scores = {}
        for name, method in methods.items():
            shares = [x for c in cases for x in regrets_of(c, tables[c[0]], method, family)]
            scores[name] = 100.0 * float(np.mean(shares)), 100.0 * max(shares)
        ours = scores.pop("tune")
        best = min(one[0] for one in scores.values()), min(one[1] for one in scores.values())
        aims = {
            LOADS: (f"<= {best[0]:.2f} % mean, {best[1]:.1f} % worst", best),
            TRANSFERS: ("<= 2 % mean, 13 % worst", (2.0, 13.0)),
        }
        target, (mean, worst) = aims.get(family, ("", (np.inf, np.inf)))
        met = ours[0] <= mean + 5e-3 and ours[1] <= worst + 5e-2
        rows.append(
            Row(f"{family}: regret of tune", _written(ours), target, met if target else None)
        )
        rows += [Row(f"{family}: regret of {name}", _written(one)) for name, one in scores.items()]
        if family == TRANSFERS:
            continue
        for level, (share, many) in zip(LEVELS, coverage_of(cases, tables), strict=True):
            near = abs(share - 100.0 * level) <= TOLERANCE
            rows.append(
                Row(
                    f"{family}: inside bands of {level:.0%}",
                    f"{share:.1f} % of {many}",
                    f"within {TOLERANCE:g} points",
                    near,
                )
            )
    return rows


BENCHMARKS = (
    Benchmark("tuning against simple rules", withheld),
    Benchmark("tuning with loads, lengths and workloads withheld", withheld_families),
)
