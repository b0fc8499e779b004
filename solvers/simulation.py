"""Code shared by all simulators: the loop over replications and the result classes.

Every simulator has the signature ``simulate(problem or workload, plan or policy, *, seed=0,
replications=..., callback=None, ...)``. The seed determines all random numbers independently of the
policy, which allows paired comparisons of policies. The callback is called repeatedly with the
number of completed replications and their mean result. `Replications` checks these three arguments,
runs all replications, and builds the result. The simulator of each problem kind provides the data
structures of its event loop, a function that runs a slice of the replications, and a function that
returns the estimates so far.
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
"""Callback that receives the number of completed replications and their mean result."""

R = TypeVar("R")
S = TypeVar("S", bound="Simulation")


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution with `degrees` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of a mean, with its standard error.

    Parameters
    ----------
    mean
        Estimated mean.
    standard_error
        Standard error of the mean, or NaN if there is only one sample.
    samples
        Sampled values, usually one for each replication.
    """

    mean: float
    standard_error: float
    samples: Floats = field(repr=False)

    @classmethod
    def of(cls, samples: Sequence[float] | Floats | Ints) -> Self:
        """Estimate a mean from independent samples."""
        values = np.asarray(samples, np.float64)
        return cls(float(values.mean()), _error(values), values)

    @classmethod
    def ratio(cls, gains: Floats | Ints, costs: Floats) -> Self:
        """Estimate the ratio of two sums over replications. The standard error is computed by the
        delta method.
        """
        mean = float(gains.sum() / costs.sum())
        return cls(mean, _error(gains - mean * costs) / float(costs.mean()), gains / costs)

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """95 % confidence interval for the mean, based on Student's t distribution."""
        half = t_quantile(len(self.samples) - 1) * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantiles of the samples, as a dictionary whose keys are the levels from 0.05 to 0.95."""
        values = np.quantile(self.samples, QUANTILES)
        return {level: float(value) for level, value in zip(QUANTILES, values, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return all values except the samples as a dictionary that can be written as JSON."""
        names = ("mean", "standard_error", "confidence_interval", "quantiles")
        return {name: _plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation(Shown, ABC):
    """The result of simulating a plan or a policy.

    The first entry of `estimates` is the main quantity, called the headline. Fields that are too
    long to display are declared with ``repr=False``, and `to_dict` omits them.

    Parameters
    ----------
    policy
        Name of the simulated policy, or "plan" if a plan was simulated.
    replications
        Number of replications.
    seed
        Seed of all random numbers.
    estimates
        Estimates of the headline and of other quantities, by name. Each name includes the unit.
    model
        Value of the headline according to a mathematical model, or None if there is no such model.
    seconds
        Computing time in seconds, including compilation.
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
        """Name of the headline, which is the main quantity."""
        return next(iter(self.estimates))

    @property
    def headline(self) -> Estimate:
        """Estimate of the main quantity. Properties such as `mean` and `quantiles` refer to this
        estimate.
        """
        return self.estimates[self.quantity]

    @property
    def mean(self) -> float:
        """Mean of the headline over all replications. If the headline is a rate, this is the ratio
        of two sums.
        """
        return self.headline.mean

    @property
    def standard_error(self) -> float:
        """Standard error of the mean of the headline."""
        return self.headline.standard_error

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """95 % confidence interval for the mean of the headline, based on Student's t
        distribution.
        """
        return self.headline.confidence_interval

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantiles of the headline over replications, as a dictionary whose keys are the levels
        from 0.05 to 0.95.
        """
        return self.headline.quantiles

    @property
    def samples(self) -> Floats:
        """Values of the headline in order of simulation, usually one for each replication."""
        return self.headline.samples

    @property
    def ratio(self) -> float | None:
        """Ratio of the simulated mean to the model's value, or None if there is no model."""
        return None if self.model is None else self.mean / self.model

    @property
    def facts(self) -> dict[str, str]:
        """Additional facts that are displayed with the result, by label."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields that are not too long to display, as a dictionary that can be written
        as JSON. Numbers that are not finite become None.
        """
        estimates = {name: estimate.to_dict() for name, estimate in self.estimates.items()}
        return {
            "kind": self.kind,
            "quantity": self.quantity,
            **estimates[self.quantity],
            "ratio": _plain(self.ratio),
            **_plain(self),
            "estimates": estimates,
        }


class Replications:
    """The replications of one simulation.

    Parameters
    ----------
    seed
        Seed of all random numbers.
    replications
        Number of replications.
    callback
        Function that is called with the number of completed replications and their mean, or None.
    minimum
        Minimum number of replications.

    Raises
    ------
    InvalidInput
        If `seed` or `replications` is outside its domain.
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
        """Run all replications, and return the estimates by name.

        Parameters
        ----------
        play
            Function that runs a slice of the replications and stores their results.
        figures
            Function that accepts a number n and returns the results of the first n replications, as
            a dictionary from names to samples or estimates. The callback receives the mean of the
            first entry.
        at_once
            Number of replications in a slice.
        workers
            Number of threads. If it is 1, the replications run in the caller's thread.
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
        """Run one replication for each of several consecutive seeds. Return the runs and the
        estimates by name.

        Parameters
        ----------
        once
            Function that accepts the keyword argument `seed`, performs one run, and returns it.
        parts
            Attribute of a run to average for each estimate, as a dictionary from estimate names to
            attribute names.
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
        """Build the result of the simulation as an instance of `kind`. `fields` contains the
        additional fields of that class.
        """
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
    """Evaluate a plan that is to be simulated.

    Raises
    ------
    InvalidInput
        If the plan is for another problem kind, or if it cannot be evaluated.
    """
    if not isinstance(plan, problem.plan_type):
        raise InvalidInput(
            f"policy: expected a plan for a {problem.kind} problem, got {describe(plan)}"
        )
    return problem.evaluate(plan)


def random_key(seed: int) -> np.uint64:
    """Convert a seed to the 64-bit key from which the kernels derive their random numbers."""
    key: np.uint64 = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return key


def _error(samples: Floats) -> float:
    return float(samples.std(ddof=1)) / math.sqrt(len(samples)) if len(samples) > 1 else math.nan


def _plain(value: Any) -> Any:
    """Convert a value to JSON-compatible data. Numbers that are not finite become None."""
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
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: _plain(getattr(value, one.name))
            for one in dataclasses.fields(value)
            if one.repr
        }
    return value
