"""Shared parts of all simulators: the loop over replications, and the shape of their results.

Every simulator is called ``simulate(problem or workload, plan or policy, *, seed=0,
replications=..., callback=None, ...)``. The seed decides all luck, whatever the policy, so that
differences between policies are paired, and the callback is called now and then with the number of
replications done and their mean. `Replications` checks these three arguments, plays all
replications, and builds the result. A kind adds the records of its event loop, a function that
plays a slice of the replications, and a function that returns the estimates of those played so far.
"""

from __future__ import annotations

import dataclasses
import math
import time
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.late import Shown
from specopt.models.problem import Evaluation, Problem

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_REPLICATIONS = 10_000_000

Tell = Callable[[int, float], object]
"""Callback that receives the number of completed replications and their mean."""

R = TypeVar("R")
S = TypeVar("S", bound="Simulation")


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean and how sure it is.

    Parameters
    ----------
    mean, standard_error
        The error of one replication alone is not known: NaN.
    samples
        What is averaged, one number per replication.
    """

    mean: float
    standard_error: float
    samples: Floats = field(repr=False)

    @classmethod
    def of(cls, samples: Sequence[float] | Floats | Ints) -> Self:
        """Return the mean of independent samples."""
        values = np.asarray(samples, np.float64)
        return cls(float(values.mean()), _error(values), values)

    @classmethod
    def ratio(cls, gains: Floats | Ints, costs: Floats) -> Self:
        """Return the ratio of two sums over replications; the delta method gives its error."""
        mean = float(gains.sum() / costs.sum())
        return cls(mean, _error(gains - mean * costs) / float(costs.mean()), gains / costs)

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the mean (Student's t)."""
        half = t_quantile(len(self.samples) - 1) * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def quantiles(self) -> dict[float, float]:
        """The quantiles of the samples that are worth showing, by level."""
        values = np.quantile(self.samples, QUANTILES)
        return {level: float(value) for level, value in zip(QUANTILES, values, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the samples as JSON-like data."""
        names = ("mean", "standard_error", "confidence_interval", "quantiles")
        return {name: _plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation(Shown, ABC):
    """The results of a plan or a policy, replication by replication. The headline is the first of
    `estimates`.

    Fields of a kind that are too long to show are marked ``repr=False``; `to_dict` leaves them out,
    too.

    Parameters
    ----------
    policy
        What was played: a policy's name, or "plan".
    replications, seed
        Number of replications, and the seed.
    estimates
        By name, with the unit: the headline, and further quantities.
    model
        Value of the headline in a mathematical model, or None if there is no such model.
    seconds
        Computing time, compilation included.
    """

    kind: ClassVar[str]
    policy: str
    replications: int
    seed: int
    estimates: Mapping[str, Estimate] = field(repr=False)
    model: float | None = None
    seconds: float

    @property
    def quantity(self) -> str:
        """The name of the headline."""
        return next(iter(self.estimates))

    @property
    def headline(self) -> Estimate:
        """What `mean`, `quantiles` and so on are of."""
        return self.estimates[self.quantity]

    @property
    def mean(self) -> float:
        """The mean over replications; for a rate, the ratio of sums."""
        return self.headline.mean

    @property
    def standard_error(self) -> float:
        """Its standard error."""
        return self.headline.standard_error

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """Its 95 % confidence interval (Student's t)."""
        return self.headline.confidence_interval

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantiles over replications, by level from 0.05 to 0.95."""
        return self.headline.quantiles

    @property
    def samples(self) -> Floats:
        """The headline of every replication, in order."""
        return self.headline.samples

    @property
    def ratio(self) -> float | None:
        """Mean / model."""
        return None if self.model is None else self.mean / self.model

    @property
    def facts(self) -> dict[str, str]:
        """Further facts for the reader, by label."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except long ones as JSON-like data. Unknown values are None."""
        shown = {
            entry.name: _plain(getattr(self, entry.name))
            for entry in dataclasses.fields(self)
            if entry.repr
        }
        estimates = {name: estimate.to_dict() for name, estimate in self.estimates.items()}
        return {
            "kind": self.kind,
            "quantity": self.quantity,
            **estimates[self.quantity],
            "ratio": _plain(self.ratio),
            **shown,
            "estimates": estimates,
        }


class Replications:
    """The replications of one simulation.

    Parameters
    ----------
    seed, replications, callback
        Arguments of the simulator.
    minimum
        Minimum number of replications.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """

    def __init__(
        self, seed: int, replications: int, callback: Tell | None, minimum: int = 1
    ) -> None:
        self.started = time.perf_counter()
        self.count = integer("replications", replications, minimum, MAX_REPLICATIONS)
        self.seed = integer("seed", seed, 0)
        self._callback = callback

    def play(
        self,
        play: Callable[[slice], object],
        figures: Callable[[int], Mapping[str, Any]],
        *,
        at_once: int = 1,
        workers: int = 1,
    ) -> dict[str, Estimate]:
        """Play all replications, and return the estimates of their figures.

        Parameters
        ----------
        play
            Plays a slice of the replications, and keeps their results.
        figures
            Returns the figures of the first replications, by their number: samples or an estimate,
            by name. The callback gets the mean of the first figure.
        at_once
            Number of replications in a slice.
        workers
            Number of threads. With 1, the caller's thread plays.
        """

        def played(first: int) -> int:
            part = slice(first, min(first + at_once, self.count))
            play(part)
            return part.stop

        def estimates(done: int) -> dict[str, Estimate]:
            found = figures(done).items()
            return {
                name: one if isinstance(one, Estimate) else Estimate.of(one) for name, one in found
            }

        pool, firsts = ThreadPoolExecutor(workers), range(0, self.count, at_once)
        try:
            for done in map(played, firsts) if workers == 1 else pool.map(played, firsts):
                if self._callback is not None:
                    self._callback(done, next(iter(estimates(done).values())).mean)
        finally:
            pool.shutdown(cancel_futures=True)
        return estimates(self.count)

    def each(
        self, once: Callable[..., R], parts: Mapping[str, str]
    ) -> tuple[tuple[R, ...], dict[str, Estimate]]:
        """Play runs of consecutive seeds, and return them and their estimates.

        Parameters
        ----------
        once
            Plays one run, given its `seed`.
        parts
            Attributes of a run by the names of the estimates.
        """
        runs: list[R] = []
        found = self.play(
            lambda part: runs.append(once(seed=self.seed + part.start)),
            lambda done: {
                name: [getattr(run, part) for run in runs[:done]] for name, part in parts.items()
            },
        )
        return tuple(runs), found

    def result(
        self, kind: type[S], policy: str, estimates: Mapping[str, Estimate], **fields: Any
    ) -> S:
        """Return the simulation of a policy, with the fields that its kind adds."""
        seconds = time.perf_counter() - self.started
        return kind(
            policy=policy,
            replications=self.count,
            seed=self.seed,
            estimates=estimates,
            seconds=seconds,
            **fields,
        )


def judged(problem: Problem, plan: object) -> Evaluation:
    """Return the judge's evaluation of a plan that is to be played.

    Raises
    ------
    InvalidInput
        If it is not a plan of the problem's kind, or the equations make no sense for it.
    """
    if not isinstance(plan, problem.plan_type):
        raise InvalidInput(f"policy: expected a plan of {problem.kind}, got {describe(plan)}")
    return problem.evaluate(plan)


def random_key(seed: int) -> np.uint64:
    """Return the key of the kernels' random numbers."""
    key: np.uint64 = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return key


def _error(samples: Floats) -> float:
    return float(samples.std(ddof=1)) / math.sqrt(len(samples)) if len(samples) > 1 else math.nan


def _plain(value: Any) -> Any:
    """Return a value as JSON-like data; numbers that are not finite become None."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {
            name if isinstance(name, str) else f"{name:g}": _plain(one)
            for name, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, Estimate):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: _plain(getattr(value, one.name))
            for one in dataclasses.fields(value)
            if one.repr
        }
    return value
