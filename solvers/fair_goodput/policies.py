"""Policies of a verifier that distributes draft tokens in every round.

============  =====================================================================================
`Robust`      the default: Eq. 5 on estimates that stay consistent and follow clients that change
`Gradient`    paper 5, Algorithm 1 as printed (Eq. 3-5)
`Fixed`       Fixed-S: floor(C / N) for everybody, always; in simulations only
`Random`      Random-S: every token to a random client; in simulations only
============  =====================================================================================

Differences of `Robust`, and their reasons:

* Eq. 3 forgets at a fixed pace, so that its estimates never settle, and is 0/0 for a client without
  drafts. Here every client's acceptance is counted with several memories side by side, from a few
  rounds to endless. Each memory is believed by its likelihood of the evidence so far; a share 1/t
  of belief is redistributed in round t ("fixed share"). Clients that stay the same get estimates
  that converge; of those that change, the pace is learned. No memory is set by hand.
* Eq. 4 smooths realised goodput, whose noise enters the gradient. Here it takes the expected
  mu(alpha-hat, S), and averages over all rounds up to `horizon_rounds` since clients came or went.
  The ratio of all tokens to those expected corrects it where acceptance depends on the position or
  the round.
* Eq. 5 takes all drafts of a round for alike. Where rounds are easy or hard, or drafts get worse,
  the chance to be accepted depends on the place. It is counted by place, too, which is consistent
  whatever rounds are, and that is believed as memories are: by how well it foretells.
* A client that gets no drafts teaches nothing. Its first draft is valued at the estimate plus some
  standard errors, the more the longer it waits, and after `probe_after` rounds without evidence it
  gets one draft whatever its estimate.

`prior_tested`, `optimism` and `reluctance` were found by a grid search in simulation for the least
worst gap over the first 600 rounds, on Table I's configurations with four sets of rates: the
optimum is flat. For `optimism`, the losses of joining clients weighed as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Floats,
    Ints,
    NonNegative,
    NonNegativeInt,
    OpenUnit,
    Positive,
    PositiveInt,
    Unit,
    check,
    describe,
)
from specopt.solvers.fair_goodput.kernels.columns import (
    BY_PLACE,
    CAP,
    COUNTS,
    ESTIMATE,
    FAIRNESS,
    FIRST_BY_PLACE,
    FIXED,
    GOODPUT,
    GRADIENT,
    LEARNING,
    LEAST,
    MEAN,
    MEMORIES,
    MOST,
    OPTIMISM,
    OPTIONS,
    PLACES,
    PRIOR,
    PRIOR_TESTED,
    PROBE_AFTER,
    RANDOM,
    RATES,
    RELUCTANCE,
    ROBUST,
    SMOOTHING,
    WEIGHT,
)


@dataclass(frozen=True, kw_only=True)
class Robust:
    """Estimates that converge or follow, expected rates, optimism and probes.

    Parameters
    ----------
    initial_estimate
        Acceptance rate of a client of which nothing is known.
    prior_tested
        Tested drafts that an initial estimate counts for.
    memories
        Rounds of evidence that each memory holds, increasing; an endless one is always added.
    reluctance
        Initial belief in a memory, as a share of that in the next longer one.
    optimism
        Standard errors that are added to the estimate in valuing a client's first draft; more while
        it gets none.
    probe_after
        Rounds without evidence after which a client gets a draft; sooner if it has hardly been
        seen; 0: never.
    horizon_rounds
        Rounds over which fairness looks back.
    """

    name: ClassVar[str] = "robust"
    code: ClassVar[int] = ROBUST
    initial_estimate: Unit = 0.5
    prior_tested: Positive = 4.0
    memories: tuple[PositiveInt, ...] = (4, 16, 64, 256)
    reluctance: OpenUnit = 0.1
    optimism: NonNegative = 0.7
    probe_after: NonNegativeInt = 200
    horizon_rounds: PositiveInt = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "memories", tuple(self.memories))
        check(self)
        if list(self.memories) != sorted(set(self.memories)):
            raise InvalidInput(
                f"memories: expected increasing numbers of rounds, got {describe(self.memories)}"
            )


@dataclass(frozen=True, kw_only=True)
class Gradient(Checked):
    """Paper 5, Algorithm 1: exponential smoothing (Eq. 3-4), then Eq. 5.

    Where Eq. 3 is 0/0, for a client without drafts, its estimate stays as it is.

    Parameters
    ----------
    smoothing
        beta of Eq. 4.
    estimate_smoothing
        eta of Eq. 3.
    initial_estimate
        alpha-hat(0); not in the paper.
    initial_goodput
        X(0); not in the paper.
    """

    name: ClassVar[str] = "gradient"
    code: ClassVar[int] = GRADIENT
    smoothing: OpenUnit = 0.5
    estimate_smoothing: OpenUnit = 0.1
    initial_estimate: Unit = 0.5
    initial_goodput: Positive = 1.0


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Fixed-S: floor(C / N) drafts for every client in every round."""

    name: ClassVar[str] = "fixed"
    code: ClassVar[int] = FIXED


@dataclass(frozen=True, kw_only=True)
class Random:
    """Random-S: every token of the budget to a random client; the paper does not say which
    distribution it has.
    """

    name: ClassVar[str] = "random"
    code: ClassVar[int] = RANDOM


Policy = Robust | Gradient | Fixed | Random
OnlinePolicy = Robust | Gradient

NAMED: dict[str, type[Policy]] = {one.name: one for one in (Robust, Gradient, Fixed, Random)}
POLICIES = tuple(NAMED)


def options_of(policy: Policy, fairness: float) -> Floats:
    """Return the kernel's ``options``."""
    options = np.zeros(OPTIONS)
    options[FAIRNESS] = fairness
    if isinstance(policy, Gradient):
        options[[SMOOTHING, LEARNING]] = policy.smoothing, policy.estimate_smoothing
    elif isinstance(policy, Robust):
        options[SMOOTHING] = 1.0 / policy.horizon_rounds
        options[[PRIOR_TESTED, PROBE_AFTER]] = policy.prior_tested, policy.probe_after
        options[[OPTIMISM, RELUCTANCE]] = policy.optimism, policy.reluctance
    return options


def discounts_of(policy: Policy) -> Floats:
    """Return the kernel's ``discounts``: the factor per round of every memory, the endless
    one last.
    """
    if not isinstance(policy, Robust):
        return np.empty(0)
    return np.array([1.0 - 1.0 / rounds for rounds in policy.memories] + [1.0])


def first_facts(
    policy: Policy, weights: Sequence[float] | Floats, estimates: Sequence[float] | Floats | None
) -> Floats:
    """Return the table of facts of clients of whom nothing but these is known; None: the policy's
    initial estimate.
    """
    memories = len(discounts_of(policy))
    facts = np.zeros((len(weights), MEMORIES + 3 * memories))
    facts[:, WEIGHT] = weights
    if isinstance(policy, (Robust, Gradient)):
        facts[:, PRIOR] = policy.initial_estimate if estimates is None else estimates
    facts[:, ESTIMATE] = facts[:, PRIOR]
    facts[:, BY_PLACE] = FIRST_BY_PLACE
    facts[:, GOODPUT] = facts[:, MEAN] = 1.0
    if isinstance(policy, Gradient):
        facts[:, GOODPUT] = policy.initial_goodput
    if isinstance(policy, Robust):
        facts[:, ESTIMATE] = np.clip(facts[:, ESTIMATE], LEAST, MOST)
        facts[:, RATES : RATES + PLACES] = facts[:, [ESTIMATE]]
        belief = policy.reluctance ** np.arange(memories - 1, -1, -1)
        facts[:, MEMORIES + 2 * memories :] = belief / belief.sum()
    return facts


def first_counts(caps: Sequence[int] | Ints) -> Ints:
    """Return the table of counts of clients of whom nothing but the cap is known."""
    counts = np.zeros((len(caps), COUNTS), np.int64)
    counts[:, CAP] = caps
    return counts
