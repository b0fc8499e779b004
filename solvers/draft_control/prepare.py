"""A draft-control problem as arrays: the expected tokens and duration of every action in every
state, and the stationary distribution of the states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specopt.models.draft_control.problem import DraftChoice, DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints


@dataclass(frozen=True, eq=False)
class Prepared:
    """A draft-control problem as arrays, for S states and R resolutions.

    An iteration in state s with L drafts at resolution index r takes
    verify[L] + fixed[s] + L per_draft[s, r] + ceil(log2(L + 1)) per_count_bit[s] seconds.

    Parameters
    ----------
    rates
        Acceptance rates by state and resolution, shape (S, R).
    per_draft
        Time to draft and send one more token, in seconds, shape (S, R).
    verify
        Verification time by number of drafts, in seconds, shape (longest + 1,).
    fixed
        Time to send one token on the downlink in each state, in seconds, shape (S,).
    per_count_bit
        Time to send one bit on the downlink in each state, in seconds, shape (S,).
    shortest, longest
        Minimum and maximum draft length.
    resolutions
        Allowed resolutions of the lattice, by resolution index, shape (R,).
    transition
        Transition matrix of the states, whose rows sum to 1, shape (S, S).
    recurrent
        Indices of the recurrent states.
    shares
        Stationary distribution of the states, shape (S,).
    """

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
        """Number of actions per state."""
        return len(self.resolutions) * (self.longest - self.shortest + 1)

    def seconds(self, lengths: Ints, per_draft: Floats) -> Floats:
        """Return the duration of an iteration for each draft length in `lengths`, in seconds.

        `per_draft` is the time to draft and send one more token, in seconds, with shape (S, R').
        The result has shape (S, R', L) for L lengths.
        """
        bits = np.array([int(length).bit_length() for length in lengths])
        return np.asarray(
            self.verify[lengths]
            + self.fixed[:, None, None]
            + lengths * per_draft[:, :, None]
            + bits * self.per_count_bit[:, None, None]
        )

    @property
    def choices(self) -> tuple[Ints, Ints]:
        """Draft lengths and resolution indices of the actions, each with shape (A,).

        The first action has the shortest drafts at the first resolution.
        """
        lengths, count = np.arange(self.shortest, self.longest + 1), len(self.resolutions)
        return np.tile(lengths, count), np.repeat(np.arange(count), len(lengths))

    @cached_property
    def tables(self) -> tuple[Floats, Floats]:
        """Expected number of tokens and duration in seconds of every action in every state.

        Both arrays have shape (S, A).
        """
        lengths = np.arange(self.shortest, self.longest + 1)
        tokens = self.rates[:, :, None] ** lengths
        tokens[:, :, 0] = sum(self.rates**count for count in range(self.shortest + 1))
        np.cumsum(tokens, axis=2, out=tokens)
        shape = (self.states, self.actions)
        return tokens.reshape(shape), self.seconds(lengths, self.per_draft).reshape(shape)

    def plan(self, choice: Ints) -> DraftControlPlan:
        """Return the plan that uses the chosen action in each state.

        States without drafts get the first resolution, because no distribution is quantised in
        them.
        """
        lengths, indices = (column[choice] for column in self.choices)
        values = np.where(lengths > 0, self.resolutions[indices], self.resolutions[0])
        pairs = list(zip(lengths.tolist(), values.tolist(), strict=True))
        choices = {
            pair: DraftChoice(draft_length=pair[0], resolution=pair[1]) for pair in set(pairs)
        }
        return DraftControlPlan(policy=tuple(choices[pair] for pair in pairs))


def prepare(problem: DraftControlProblem) -> Prepared:
    """Convert a draft-control problem to arrays."""
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
