"""Scheduling policies of a verifier that distributes draft tokens among its clients in every round.

============  =====================================================================================
`Robust`      the default: Eq. 5 with consistent estimates that follow clients when they change
`Gradient`    paper 5, Algorithm 1 as printed (Eq. 3-5)
`Fixed`       Fixed-S: floor(C / N) tokens for every client in every round; in simulations only
`Random`      Random-S: every token to a random client; in simulations only
============  =====================================================================================

`Robust` differs from the policy of the paper for the following reasons:

* Eq. 3 discounts evidence at a fixed rate, so its estimates never settle. For a client without
  drafts, Eq. 3 is 0/0. `Robust` keeps several estimates ("memories") of each client's acceptance in
  parallel, over horizons from a few rounds to unlimited. Each memory is weighted by the likelihood
  that it assigned to the evidence so far. In round t, a share 1/t of the weight is redistributed
  ("fixed share"). The estimates of clients that stay the same converge, and the rate of change of
  other clients is learned. No horizon needs to be tuned by hand.
* Eq. 4 smooths realised goodput, whose noise enters the gradient. `Robust` uses the expected
  mu(alpha-hat, S), and averages over the rounds since clients joined or left, at most
  `horizon_rounds`. If acceptance depends on the position or the round, the ratio of realised to
  expected tokens corrects the average.
* Eq. 5 assumes that all drafts of a round have the same acceptance rate. If some rounds are easier
  than others, or drafts get worse within a round, the acceptance rate depends on the position.
  `Robust` therefore also estimates a rate for each position, which is consistent for any kind of
  rounds. This estimate is weighted like the memories, by how well it predicts.
* A client without drafts provides no information. Its first draft is valued at the estimate plus
  some standard errors, which grow with the waiting time. After `probe_after` rounds without
  evidence, the client receives one draft regardless of its estimate.

`prior_tested`, `optimism` and `reluctance` were found by a grid search in simulation. The search
minimised the worst gap over the first 600 rounds, on Table I's configurations with four sets of
rates. The optimum is flat. For `optimism`, the losses due to joining clients were included with the
same weight.
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
    """The default policy, with expected rates, optimism, probes and adaptive estimates.

    The estimates converge for clients that do not change, and follow clients that do.

    Parameters
    ----------
    initial_estimate
        Initial estimate of the acceptance rate of a client.
    prior_tested
        Number of tested drafts to which the initial estimate is equivalent.
    memories
        Horizon of each memory, in rounds with evidence, in increasing order. An unlimited memory is
        always added.
    reluctance
        Initial weight of a memory, relative to the weight of the next longer memory.
    optimism
        Number of standard errors added to the estimate when valuing a client's first draft. The
        number grows while the client has no drafts.
    probe_after
        Number of rounds without evidence after which a client receives a draft. The number is
        smaller for clients with little evidence; 0 means never.
    horizon_rounds
        Number of past rounds that fairness takes into account.
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
                f"memories: expected increasing round counts, got {describe(self.memories)}"
            )


@dataclass(frozen=True, kw_only=True)
class Gradient(Checked):
    """The policy of paper 5, Algorithm 1: exponential smoothing (Eq. 3-4), followed by Eq. 5.

    For a client without drafts, Eq. 3 is 0/0, and the estimate stays unchanged.

    Parameters
    ----------
    smoothing
        Smoothing factor beta of the goodput in Eq. 4.
    estimate_smoothing
        Smoothing factor eta of the estimated acceptance rate in Eq. 3.
    initial_estimate
        Initial estimate alpha-hat(0) of the acceptance rate, which the paper does not specify.
    initial_goodput
        Initial goodput X(0), which the paper does not specify.
    """

    name: ClassVar[str] = "gradient"
    code: ClassVar[int] = GRADIENT
    smoothing: OpenUnit = 0.5
    estimate_smoothing: OpenUnit = 0.1
    initial_estimate: Unit = 0.5
    initial_goodput: Positive = 1.0


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """The policy Fixed-S, in which every client gets floor(C / N) drafts in every round."""

    name: ClassVar[str] = "fixed"
    code: ClassVar[int] = FIXED


@dataclass(frozen=True, kw_only=True)
class Random:
    """The policy Random-S, which assigns every token of the budget to a client drawn uniformly.

    The paper does not specify the distribution of the random client.
    """

    name: ClassVar[str] = "random"
    code: ClassVar[int] = RANDOM


Policy = Robust | Gradient | Fixed | Random
OnlinePolicy = Robust | Gradient

NAMED: dict[str, type[Policy]] = {one.name: one for one in (Robust, Gradient, Fixed, Random)}
POLICIES = tuple(NAMED)


def options_of(policy: Policy, fairness: float) -> Floats:
    """Return the policy's options as the array ``options`` that the kernels expect."""
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
    """Return the array ``discounts`` that the kernels expect.

    It contains the discount factor per round of every memory, with the unlimited memory last.
    """
    if not isinstance(policy, Robust):
        return np.empty(0)
    return np.array([1.0 - 1.0 / rounds for rounds in policy.memories] + [1.0])


def first_facts(
    policy: Policy, weights: Sequence[float] | Floats, estimates: Sequence[float] | Floats | None
) -> Floats:
    """Return the initial table of facts for new clients, given their weights and estimates.

    If the estimates are None, the policy's initial estimate is used.
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
    """Return the initial table of counts for new clients, given their caps."""
    counts = np.zeros((len(caps), COUNTS), np.int64)
    counts[:, CAP] = caps
    return counts
