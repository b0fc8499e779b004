"""Comparison of several drafters and modes, overall and for each workload.

It also computes the gain from a second deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.sweep import Point, Setup, Sweep
from specopt.solvers.speculation_table.tuning.decision import decide
from specopt.solvers.speculation_table.tuning.goal import WHOLE, Goal
from specopt.solvers.speculation_table.tuning.tuner import Tuner
from specopt.solvers.speculation_table.tuning.tuning import Tuning


@dataclass(frozen=True, eq=False)
class Options:
    """The choice for each setup, and the best choice overall. A setup is a drafter with a mode.

    Parameters
    ----------
    tuners
        Tuner for each setup.
    tunings
        Choice for each setup.
    """

    tuners: Mapping[Setup, Tuner]
    tunings: Mapping[Setup, Tuning]

    @classmethod
    def of(
        cls, sweep: Sweep, goal: Goal, regret: float, confidence: float, *, asking: bool = False
    ) -> Options:
        """Tune every setup of a sweep and return the choices.

        Tables are considered only for the mode "fixed" without draft trees.
        """
        tuners = {}
        for setup in sweep.setups:
            own, wanted, fixed = sweep.of(setup), goal, setup.mode != "fixed" or setup.topk > 1
            if fixed:
                measured = tuple(k for k in own.draft_lengths if k)
                wanted = replace(goal, single=True, draft_lengths=measured)
            tuners[setup] = Tuner.from_sweep(
                own, wanted, regret, confidence, asking=asking and not fixed
            )
        tunings = {setup: replace(tuner.result(), setup=setup) for setup, tuner in tuners.items()}
        return cls(tuners, tunings)

    @cached_property
    def loads(self) -> list[int]:
        """Loads that were measured for all setups, in increasing order."""
        found = sorted(set.intersection(*(set(one.concurrencies) for one in self.tunings.values())))
        if not found:
            raise InvalidInput(
                "drafter: to compare drafters, at least one load must be measured for all of them"
            )
        return found

    @cached_property
    def ranked(self) -> list[Setup]:
        """Setups from best to worst.

        They are in order of decreasing capacity. Ties are broken by the geometric mean of the
        throughput.
        """
        return sorted(
            self.tunings,
            key=lambda one: (-self.tunings[one].carries, -self._mean(self.tunings[one])),
        )

    @property
    def best(self) -> Tuning:
        """Best choice over all setups."""
        return self.tunings[self.ranked[0]]

    def to_dict(self) -> dict[str, Any]:
        """Return the result of `specopt tune` as JSON-like data, without engine settings."""
        best, several = self.best, len(self.tunings) > 1
        data = best.to_dict()
        data["regret_bound"] = self.regret_bound
        data["option"] = named(best.setup) if several and best.schedule.speculates else None
        if several:
            own = {setup: tuning.to_dict() for setup, tuning in self.tunings.items()}
            for key in ("predictions", "break_even", *(["capacity"] if best.capacity else [])):
                data[key] = [
                    named(setup) | row
                    for setup in self.ranked
                    for row in own[setup][key]
                    if row["draft_length"] != "none" or setup == best.setup
                ]
            base = np.log(self._none(best)).mean()
            data["options"] = [
                {
                    **named(setup),
                    "draft_length": one.name,
                    "speedup": (
                        float(np.exp(self._mean(one) - base))
                        if best.relative
                        else one.schedule.mean_speedup()
                    ),
                    **({"capacity": one.carries} if best.capacity else {}),
                }
                for setup in self.ranked
                for one in [self.tunings[setup]]
            ]
            if best.relative:
                data["notes"].append(
                    f"all speed-ups are relative to"
                    f" {best.setup.drafter or f'mode {best.setup.mode}'} with"
                    f" {self.tuners[best.setup].predictor.sweep.relative} drafts"
                )
        if len(self._by_class) > 1:
            data["classes"] = self.classes
        if self.second is not None:
            data["second"] = self.second
        return data

    @cached_property
    def doubtful(self) -> dict[Setup, Floats]:
        """Shares of throughput that may be lost at each load, by setup.

        The loads are those that all setups have in common. The mapping contains the setup with the
        best estimate and every setup that may in fact be better.
        """
        best, found = self.best, {}
        low = np.array([best.grid.low[best.row(c), best.option(c)] for c in self.loads])
        for setup, one in self.tunings.items():
            high = np.array([np.nanmax(one.grid.high[one.grid.row(c), 1:]) for c in self.loads])
            if setup == best.setup or np.log(high / low).mean() > 0.0:
                found[setup] = np.maximum(0.0, 1.0 - low / high)
        return found

    @property
    def regret_bound(self) -> float:
        """Upper bound on the share of throughput that the choice loses at any load.

        The loss is relative to the configuration that may be best within the bands.
        """
        best = self.best
        others = (float(lost.max()) for setup, lost in self.doubtful.items() if setup != best.setup)
        return max(best.regret_bound, *others, 0.0)

    def ask(self, budget: int) -> list[tuple[Setup, Point]]:
        """Return the next points to measure, each with its setup.

        They belong to the setup with the best estimate and to setups that may in fact be better.
        """
        found: list[tuple[Setup, Point]] = []
        for setup in self.ranked:
            if len(found) < budget and setup in self.doubtful:
                found += [(setup, point) for point in self.tuners[setup].ask(budget - len(found))]
        return found

    @cached_property
    def classes(self) -> list[dict[str, Any]]:
        """Best configuration for each workload, considered separately.

        Each entry also contains the share of throughput that the workload loses if the best
        configuration for all workloads together is used instead.
        """
        return [
            {
                "workload": name,
                **named(one.setup),
                "draft_length": one.name,
                "speedup": float(np.exp(self._mean(one) - np.log(self._none(shown)).mean())),
                "lost": float(1.0 - np.exp(np.log(shared / self._speeds(one)).mean())),
            }
            for name, (shared, every) in self._by_class.items()
            for one in [max(every, key=self._mean)]
            for shown in [next(x for x in every if x.setup == self.best.setup)]
        ]

    @property
    def second(self) -> dict[str, Any] | None:
        """Second deployment that adds the most throughput to the best deployment.

        A second deployment has a single configuration, and serves the loads at which it is better
        than the best deployment. The value is None if no second deployment increases the
        throughput.
        """
        shared = np.array([own for own, _ in self._by_class.values()])
        shares = np.array([(self.best.goal.mix or {}).get(name, 1.0) for name in self._by_class])
        found = []
        answers = [one for _, every in self._by_class.values() for one in every]
        for setup in self.ranked:
            mine = [one for one in answers if one.setup == setup]
            if len(mine) < len(shared):
                continue
            for answer in [self.tunings[setup], *mine]:
                several = [replace(one, schedule=answer.schedule) for one in mine]
                own = np.array([self._speeds(one) for one in several])
                both = np.log((shares @ (1 / shared)) / (shares @ (1 / np.maximum(own, shared))))
                better = [
                    {"workload": name, "concurrency": c, "draft_length": answer.schedule.at(c)}
                    for name, row, base in zip(self._by_class, own, shared, strict=True)
                    for c, speed, usual in zip(self.loads, row, base, strict=True)
                    if speed > usual * (1.0 + self.best.goal.loss)
                ]
                gain = float(np.exp(both.mean())) - 1.0
                found.append({**named(setup), "gain": gain, "better": better})
        best = max(found, key=lambda one: float(one["gain"]), default=None)
        return best if best and best["better"] else None

    @cached_property
    def _by_class(self) -> dict[str, tuple[Floats, list[Tuning]]]:
        """Throughput with the common configuration, and the best configurations of all setups, by
        workload.

        The throughput is an array over the loads. The common configuration is the best
        configuration for all workloads together.
        """
        best, found = self.best, {}
        names = list(best.goal.mix or self.tuners[best.setup].workloads)
        for name in [name for name in names if name != WHOLE or len(names) == 1]:
            every = []
            for setup, tuner in self.tuners.items():
                if name in tuner.workloads:
                    own = decide(tuner.predictor, replace(tuner.goal, workload=name, mix=None))
                    if own.grid.sizes == best.grid.sizes:
                        every.append(replace(own, setup=setup))
            for own in every:
                if own.setup == best.setup:
                    shared = replace(own, schedule=best.schedule)
                    found[name] = self._speeds(shared), every
        return found

    def _none(self, tuning: Tuning) -> Floats:
        return tuning.grid.mean[[tuning.grid.row(c) for c in self.loads], 0]

    def _mean(self, tuning: Tuning) -> float:
        return float(np.log(self._speeds(tuning)).mean())

    def _speeds(self, tuning: Tuning) -> Floats:
        """Return the throughput of a choice at each load, including costs and waiting.

        The loads are those that all setups have in common.
        """
        return np.array([tuning.speedup(c) for c in self.loads]) * self._none(tuning)


def named(setup: Setup) -> dict[str, Any]:
    """Return a setup as JSON-like data."""
    return dict(vars(setup))
