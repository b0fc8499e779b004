"""The problem as arrays: tokens and seconds of the actions of every state, and how often states
occur.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from specopt.models.draft_control.problem import DraftChoice, DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints


@dataclass(frozen=True, eq=False)
class Prepared:
    """One problem in arrays; an iteration of state s with L drafts at resolution index r takes
    verify[L] + fixed[s] + L per_draft[s, r] + ceil(log2(L + 1)) per_count_bit[s] seconds.

    Parameters
    ----------
    rates
        Acceptance rates, shape (S, R).
    per_draft
        Seconds of one more draft: drafting and sending it, shape (S, R).
    verify
        Seconds of verification by the number of drafts, shape (longest + 1,).
    fixed
        Seconds of the token sent down, shape (S,).
    per_count_bit
        Seconds of one downlink bit, shape (S,).
    shortest, longest
        The range of draft lengths.
    resolutions
        Values of the resolution indices, shape (R,).
    transition
        Rows sum to 1, shape (S, S).
    recurrent
        Indices of the recurrent states.
    shares
        The stationary distribution, shape (S,).
    """  # the summary holds the formula

    rates: Floats
    per_draft: Floats
    verify: Floats
    fixed: Floats
    per_count_bit: Floats
    shortest: int
    longest: int
    resolutions: Ints
    transition: Floats
    recurrent: Ints
    shares: Floats

    @property
    def states(self) -> int:
        """Number of states S."""
        return len(self.fixed)

    @property
    def actions(self) -> int:
        """Number of actions of each state."""
        return len(self.resolutions) * (self.longest - self.shortest + 1)

    @cached_property
    def for_kernels(self) -> Any:
        """The record that every kernel takes first."""
        from specopt.solvers.draft_control.kernels.simulation import Actions

        return Actions(
            rates=self.rates,
            per_draft=self.per_draft,
            verify=self.verify,
            fixed=self.fixed,
            per_count_bit=self.per_count_bit,
            low=self.shortest,
            high=self.longest,
        )

    @property
    def choices(self) -> tuple[Ints, Ints]:
        """Lengths and resolution indices of the actions of a state, shape (A,) each. The shortest
        drafts at the first resolution come first.
        """
        lengths, count = np.arange(self.shortest, self.longest + 1), len(self.resolutions)
        return np.tile(lengths, count), np.repeat(np.arange(count), len(lengths))

    @cached_property
    def tables(self) -> tuple[Floats, Floats]:
        """Tokens and seconds of every action in every state, each of shape (S, A)."""
        lengths = np.arange(self.shortest, self.longest + 1)
        tokens = self.rates[:, :, None] ** lengths
        tokens[:, :, 0] = sum(self.rates**count for count in range(self.shortest + 1))
        np.cumsum(tokens, axis=2, out=tokens)
        bits = np.array([int(length).bit_length() for length in lengths])
        seconds = (
            self.verify[lengths]
            + self.fixed[:, None, None]
            + lengths * self.per_draft[:, :, None]
            + bits * self.per_count_bit[:, None, None]
        )
        shape = (self.states, self.actions)
        return tokens.reshape(shape), seconds.reshape(shape)

    def plan(self, choice: Ints) -> DraftControlPlan:
        """Return the plan of one action per state.

        Without drafts nothing is quantised: such a state gets the first resolution.
        """
        lengths, indices = (column[choice] for column in self.choices)
        values = np.where(lengths > 0, self.resolutions[indices], self.resolutions[0])
        pairs = list(zip(lengths.tolist(), values.tolist(), strict=True))
        choices = {
            pair: DraftChoice(draft_length=pair[0], resolution=pair[1]) for pair in set(pairs)
        }
        return DraftControlPlan(policy=tuple(choices[pair] for pair in pairs))


def prepare(problem: DraftControlProblem) -> Prepared:
    """Return the arrays of a problem."""
    token_bits = np.ceil(
        np.log2(problem.vocabulary_size)
    )  # exact at powers of two; V is far below 2^48
    uplink = np.array([state.uplink_bits_per_second for state in problem.states])
    downlink = np.array(
        [
            np.inf if state.downlink_bits_per_second is None else state.downlink_bits_per_second
            for state in problem.states
        ]
    )
    bits = np.array([problem.distribution_bits(state) for state in problem.states])
    return Prepared(
        rates=np.array([state.acceptance_rates for state in problem.states]),
        per_draft=problem.draft_seconds_per_token + (token_bits + bits) / uplink[:, None],
        verify=np.array(problem.verify_by_length),
        fixed=token_bits / downlink,
        per_count_bit=1.0 / downlink,
        shortest=problem.draft_lengths[0],
        longest=problem.draft_lengths[1],
        resolutions=np.array(problem.resolutions),
        transition=problem.transition.scaled,
        recurrent=np.array(problem.recurrent_states),
        shares=problem.stationary_distribution,
    )
