"""The method `double-q-learning` for `draft-control`. It learns by tabular double Q-learning on the
simulated channel, without knowledge of the model (paper 3, Sec. IV-C).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from specopt.models.fields import HalfOpenUnit, Unit
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify
from specopt.solvers.draft_control.prepare import Prepared
from specopt.solvers.method import Outcome

_STEPS_PER_CALL = 20_000
_FORGET = 1e-5
"""Fraction of the running sums of tokens and seconds that each greedy step discards. As a result,
rho tracks the policy of the last 10^5 greedy steps.
"""

StepCount = Annotated[int, Meta(ge=1, le=10_000_000_000)]
StepPower = Annotated[float, Meta(gt=0.5, le=1)]


@dataclass(frozen=True)
class DoubleQLearning(DraftControlMethod):
    """Learn two tables of action values from sampled iterations, and choose the action with the
    largest sum in each state.

    Paper 3 trains a double deep Q-network on the reward N / T of Eq. 13. This reward is myopic: its
    optimal policy is the policy of the method `myopic`. This method uses tables instead of a
    network (van Hasselt 2010). Its default reward is that of a semi-Markov process, tokens - rho
    seconds, where rho is the running ratio of tokens to seconds over greedy steps. At the fixed
    point, the greedy policy solves the optimality equation. Since the next state does not depend on
    the action, the discount does not affect which action is best. It only limits how far noise
    propagates.

    An episode starts in a state drawn uniformly at random. It ends after 20,000 iterations, or
    after about 10^8 divided by the number of actions if that is fewer. Intermediate plans are
    evaluated only to report progress and to have a plan if the time runs out. The method returns
    the last plan, which need not be the best plan seen.

    Parameters
    ----------
    reward
        Reward of an iteration: "rate" for N - rho T, or "myopic" for N / T (Eq. 13).
    steps
        Number of iterations used for learning.
    discount
        Discount factor applied to the value of the next state.
    step_power
        Exponent of the step size: the k-th update of a value has step size k ** -step_power.
    explore_from, explore_to
        Probability of a random action at the first and the last step, with linear interpolation.
    """

    name = "double-q-learning"
    source = "paper 3, Sec. IV-C, with tables instead of a network (van Hasselt 2010)"
    guarantee = "none; with the reward N - rho T it tends to the optimum as steps grow"
    complexity = "O(A) per step, and O(S^3) for its bound"
    bytes_per_part = 85.0  # 32 bytes hold the learned values and their counts

    reward: Literal["rate", "myopic"] = "rate"
    steps: StepCount = 500_000
    discount: HalfOpenUnit = 0.5
    step_power: StepPower = 0.8
    explore_from: Unit = 1.0
    explore_to: Unit = 0.1

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Learn from one episode at a time, and evaluate the current plan after each episode."""
        simulation = budget.load("draft_control.simulation")
        lengths, indices = prepared.choices
        shape = 2, prepared.states, prepared.actions
        learned = simulation.Learned(
            values=np.zeros(shape),
            seen=np.zeros(shape, np.int64),
            tokens_and_seconds=np.array(
                [
                    1.0,
                    float((prepared.verify[0] + prepared.fixed).mean() + prepared.per_draft.min()),
                ]
            ),
        )
        cumulative = np.cumsum(prepared.transition, axis=1)
        seeds = np.random.SeedSequence(budget.seed)
        key = seeds.generate_state(1, np.uint64)[0]
        places = np.random.default_rng(seeds)
        done, check = 0, budget.pace()
        while done < self.steps:
            check()
            count = min(_STEPS_PER_CALL, 1 + 10**8 // prepared.actions, self.steps - done)
            explore_from, explore_to = (
                self.explore_from + (self.explore_to - self.explore_from) * part / self.steps
                for part in (done, done + count)
            )
            learning = simulation.Learning(
                lengths=lengths,
                indices=indices,
                seconds=prepared.tables[1],
                per_time=self.reward == "rate",
                discount=self.discount,
                step_power=self.step_power,
                explore_from=explore_from,
                explore_to=explore_to,
                forget=_FORGET,
            )
            begin = int(places.integers(prepared.states))
            simulation.learn(prepared.rates, cumulative, learning, key, done, count, begin, learned)
            done += count
            best = np.argmax(learned.values.sum(axis=0), axis=1)
            budget.offer(prepared.plan(best))
        outcome = certify(prepared, best, budget)
        tokens, seconds = learned.tokens_and_seconds.tolist()
        stats = {
            **outcome.stats,
            "steps": done,
            "learned_rate": tokens / seconds if self.reward == "rate" else None,
            "least_visits": int(learned.seen.sum(axis=0).min()),
        }
        return replace(outcome, stats=stats)
