"""Tabular double Q-learning on the simulated channel, without knowledge of the model (paper 3, Sec.
IV-C).
"""

from __future__ import annotations

from dataclasses import dataclass
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
"""Share of the running tokens and seconds that a greedy step forgets: rho follows the policy of the
last 10^5.
"""

StepCount = Annotated[int, Meta(ge=1, le=10_000_000_000)]
StepPower = Annotated[float, Meta(gt=0.5, le=1)]


@dataclass(frozen=True)
class DoubleQLearning(DraftControlMethod):
    """Learn two tables of action values from sampled iterations, and choose the action with the
    largest sum in each state.

    The paper trains a double deep Q-network on the reward N / T of Eq. 13, which is myopic: its
    best policy is that of the method `myopic`. Here the tables are exact (van Hasselt 2010), and
    the default reward is the one of a semi-Markov process: tokens - rho seconds, where rho is the
    running ratio of tokens and seconds over greedy steps. At its fixed point the greedy policy
    solves the optimality equation. As the next state does not depend on the action, the discount
    does not change which action is best; it only limits how far noise travels.

    An episode starts in any state, each with the same chance, and ends after 20,000 iterations, or
    10^8 by actions. What is learned is judged only for progress and when the time is up: the last
    plan is returned, not the best seen.

    Parameters
    ----------
    reward
        "rate": N - rho T; "myopic": N / T (Eq. 13).
    steps
        Number of iterations to learn from.
    discount
        Discount factor of the next state's value.
    step_power
        The step size of an action's k-th visit is k to minus this power.
    explore_from, explore_to
        Chance of a random action, linear over the steps.
    """

    name = "double-q-learning"
    source = "paper 3, Sec. IV-C, with tables instead of a network (van Hasselt 2010)"
    guarantee = "none; with the reward N - rho T it tends to the optimum as steps grow"
    complexity = "O(A) per step, and O(S^3) for its bound"
    bytes_per_part = 85.0  # 32 of them for the learned values and their counts

    reward: Literal["rate", "myopic"] = "rate"
    steps: StepCount = 500_000
    discount: HalfOpenUnit = 0.5
    step_power: StepPower = 0.8
    explore_from: Unit = 1.0
    explore_to: Unit = 0.1

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Learn, episode by episode."""
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
                per_time=self.reward == "rate",
                discount=self.discount,
                step_power=self.step_power,
                explore_from=explore_from,
                explore_to=explore_to,
                forget=_FORGET,
            )
            begin = int(places.integers(prepared.states))
            simulation.learn(
                prepared.for_kernels, cumulative, learning, key, done, count, begin, learned
            )
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
        return Outcome(plan=outcome.plan, bound=outcome.bound, stats=stats)
