"""Draft control: a device chooses a draft length and quantisation in each channel state (paper 3).

In each iteration, a device drafts L tokens, each from a distribution quantised to a lattice (Eq.
5), and sends the tokens and distributions to a server. The server verifies the tokens, and returns
the accepted tokens and one token from the verify model. The channel state determines the link rates
and the acceptance rate at each lattice resolution. The states form a Markov chain with one step per
iteration. The device's choices do not affect the chain. The objective is the long-run token rate,
which is the ratio of expectations E[N] / E[T]. In the paper, Eq. 12 is the expectation of a ratio
instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta

from specopt.models.codes.lattice import distribution_bits
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    MAX_TOKENS,
    Checked,
    Column,
    Floats,
    FloatsLike,
    Given,
    Ints,
    IntsLike,
    NonNegative,
    Objects,
    OptionalNonNegatives,
    Positive,
    SomeObjects,
    Units,
    describe,
    frozen,
    optional,
    required,
)
from specopt.models.markov_chain import TransitionMatrix, recurrent_classes, stationary_distribution
from specopt.models.problem import Evaluation, Plan, Problem
from specopt.models.rates import SecondsByLength, by_length

MAX_DRAFT_LENGTH = 10_000
"""Maximum draft length in a problem. The limit detects mistakes such as a length given in bytes."""

MAX_RESOLUTION = 100_000
"""Maximum resolution of a lattice."""

VocabularySize = Annotated[int, Meta(ge=2, le=MAX_TOKENS)]
DraftLength = Annotated[int, Meta(ge=0, le=MAX_DRAFT_LENGTH)]
Resolution = Annotated[int, Meta(ge=1, le=MAX_RESOLUTION)]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelState(Checked):
    """A channel state, which determines the link rates and acceptance rates. The device knows the
    state at the start of each iteration.

    Parameters
    ----------
    uplink_bits_per_second
        Uplink rate C_u in this state, in bits per second.
    acceptance_rates
        Acceptance rate in [0, 1] at each resolution. This is the probability that a draft token is
        accepted, given that all its predecessors were accepted.
    downlink_bits_per_second
        Downlink rate C_d in this state, in bits per second. None means that the downlink takes no
        time.
    distribution_bits
        Expected number of bits that encode a quantised distribution at each resolution. The field
        is used only with the distribution code "support".
    """

    uplink_bits_per_second: Positive
    acceptance_rates: Units = required()
    downlink_bits_per_second: Positive | None = None
    distribution_bits: OptionalNonNegatives = optional()


@dataclass(frozen=True, kw_only=True)
class DraftChoice(Checked):
    """The draft length and resolution that the device uses in one state.

    Parameters
    ----------
    draft_length
        Number L of draft tokens.
    resolution
        Lattice resolution l. This is the value itself, not its index in the problem.
    """

    draft_length: DraftLength
    resolution: Resolution


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftControlPlan(Plan):
    """A stationary policy, which specifies one choice for each channel state.

    Parameters
    ----------
    policy
        Choice of draft length and resolution in each state.
    """

    policy: Objects[DraftChoice] = required()

    def __post_init__(self) -> None:
        super().__post_init__()
        for state, choice in enumerate(self.policy):
            if not isinstance(choice, DraftChoice):
                raise InvalidInput(
                    f"policy[{state}]: expected a DraftChoice, got {describe(choice)}"
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftControlProblem(Problem[DraftControlPlan]):
    """Maximise the long-run number of tokens per second of a device that sends quantised drafts
    over a changing channel.

    The objective is Eq. 12 of paper 3, but defined as a ratio of means.

    Parameters
    ----------
    vocabulary_size
        Number V of tokens in the vocabulary.
    draft_seconds_per_token
        Drafting time T_SLM per token, in seconds.
    verify_seconds
        Verification time T_LLM in seconds: one number for all draft lengths, or one number for each
        draft length from 0 to the maximum.
    draft_lengths
        Pair of the minimum and the maximum draft length.
    resolutions
        Allowed lattice resolutions l (Eq. 5), which must be distinct.
    states
        States of the channel. A state may also describe the draft model's confidence.
    transition
        Probabilities of the next state (column) given the current state (row), shape (S, S), with
        one step per iteration. There must be exactly one recurrent class, which may be periodic.
        Transient states are allowed.
    distribution_code
        Code for quantised distributions. With "lattice", Eq. 6 determines the number of bits. With
        "support", each state specifies the number of bits.

    Examples
    --------
    >>> from specopt import ChannelState, DraftControlProblem, solve
    >>> problem = DraftControlProblem(
    ...     vocabulary_size=50272,
    ...     draft_seconds_per_token=1e-3,
    ...     verify_seconds=0.1,
    ...     draft_lengths=[1, 16],
    ...     resolutions=[100],
    ...     states=[
    ...         ChannelState(uplink_bits_per_second=5e4, acceptance_rates=[0.9]),
    ...         ChannelState(uplink_bits_per_second=1e7, acceptance_rates=[0.9]),
    ...     ],
    ...     transition=[[0.5, 0.5], [0.2, 0.8]],
    ... )
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "draft-control"
    plan_type = DraftControlPlan
    sense = "maximize"
    objective_label = "tokens per second"

    vocabulary_size: VocabularySize
    draft_seconds_per_token: NonNegative
    verify_seconds: Given[NonNegative | SecondsByLength, float | FloatsLike | SecondsByLength] = (
        required()
    )
    draft_lengths: Given[tuple[DraftLength, DraftLength], IntsLike] = required()
    resolutions: Given[Annotated[Ints, Column(Resolution)], IntsLike] = required()
    states: SomeObjects[ChannelState] = required()
    transition: Given[TransitionMatrix, TransitionMatrix | Sequence[FloatsLike] | Floats] = (
        required()
    )
    distribution_code: Literal["lattice", "support"] = "lattice"

    def __post_init__(self) -> None:
        super().__post_init__()
        shortest, longest = self.draft_lengths
        if shortest > longest:
            raise InvalidInput(
                f"draft_lengths: expected [min, max] with min <= max, got [{shortest}, {longest}]"
            )
        values = self.resolutions.tolist()
        for index, value in enumerate(values):
            if value in values[:index]:
                raise InvalidInput(
                    f"resolutions[{index}]: expected distinct resolutions, got {value} twice"
                )
        for index, state in enumerate(self.states):
            self._check_state(state, f"states[{index}]")
        if len(self.transition) != len(self.states):
            raise InvalidInput(
                f"transition: expected {len(self.states)} rows, one per state, got"
                f" {len(self.transition)}"
            )
        classes = recurrent_classes(self.transition.rows)
        if len(classes) != 1:
            shown = " and ".join(describe(members) for members in classes[:4])
            more = f" and {len(classes) - 4} more" if len(classes) > 4 else ""
            raise InvalidInput(
                f"transition: expected exactly one recurrent class, got {len(classes)}: states"
                f" {shown}{more}"
            )

    def _check_state(self, state: ChannelState, where: str) -> None:
        if not isinstance(state, ChannelState):
            raise InvalidInput(f"{where}: expected a ChannelState, got {describe(state)}")
        count = len(self.resolutions)
        for name in ("acceptance_rates", "distribution_bits"):
            values = getattr(state, name)
            if values is not None and len(values) != count:
                raise InvalidInput(
                    f"{where}.{name}: expected {count} entries, as in resolutions, got"
                    f" {len(values)}"
                )
        if state.distribution_bits is None and self.distribution_code == "support":
            raise InvalidInput(
                f"{where}.distribution_bits: expected {count} entries, got none; they are"
                ' required for the distribution code "support"'
            )
        verify = self.verify_by_length
        shortest = self.draft_lengths[0]
        if not verify[0] and not shortest and state.downlink_bits_per_second is None:
            raise InvalidInput(
                f"verify_seconds: expected a number > 0, got {verify[0]}; an iteration without"
                f" drafts would take no time in {where}"
            )
        bits = max(self.distribution_bits(state))
        slowest = self._seconds(state, self.draft_lengths[1], bits, float(verify.max()))
        quickest = self._seconds(state, shortest, 0.0, float(verify[shortest]))
        if not (math.isfinite(slowest) and math.isfinite(1.0 / quickest if quickest else math.inf)):
            raise InvalidInput(
                f"{where}.uplink_bits_per_second: the time of an iteration must be finite and > 0,"
                f" got {quickest} to {slowest} seconds"
            )

    @cached_property
    def recurrent_states(self) -> list[int]:
        """Indices of the states in the recurrent class, in increasing order. The objective depends
        only on these states.
        """
        return recurrent_classes(self.transition.rows)[0]

    @cached_property
    def stationary_distribution(self) -> Floats:
        """Long-run share of iterations in each state, shape (S,)."""
        return frozen(stationary_distribution(self.transition.scaled, self.recurrent_states))

    @cached_property
    def verify_by_length(self) -> Floats:
        """Verification time T_LLM for each draft length from 0 to the maximum, in seconds."""
        return by_length(self.verify_seconds, self.draft_lengths[1], "verify_seconds")

    def distribution_bits(self, state: ChannelState) -> list[float]:
        """Return the number of bits that encode a quantised distribution at each resolution. The
        number follows from Eq. 6 or, with the code "support", is specified by the state.
        """
        if self.distribution_code == "support" and state.distribution_bits is not None:
            bits: list[float] = state.distribution_bits.tolist()
            return bits
        return self._lattice_bits

    @cached_property
    def _lattice_bits(self) -> list[float]:
        return [
            float(distribution_bits(value, self.vocabulary_size))
            for value in self.resolutions.tolist()
        ]

    # ------------------------------------------------------------------ the judge

    def iteration_seconds(self, state: int, choice: DraftChoice) -> float:
        """Return the duration of an iteration, in seconds (Eq. 7-9).

        In Eq. 8, the number of accepted tokens is encoded in ceil(log2(L + 1)) bits, because it has
        L + 1 possible values.

        Parameters
        ----------
        state
            Index of the state.
        choice
            Draft length and resolution. The resolution must be one of the problem's resolutions.
        """
        now = self.states[state]
        bits = self.distribution_bits(now)[self.resolutions.tolist().index(choice.resolution)]
        verify = self.verify_seconds
        if isinstance(verify, SecondsByLength):
            verify = float(verify.values[choice.draft_length])
        return self._seconds(now, choice.draft_length, bits, verify)

    def _seconds(self, state: ChannelState, L: int, bits: float, verify: float) -> float:
        token_bits = (self.vocabulary_size - 1).bit_length()  # ceil(log2 V)
        uplink = L * (token_bits + bits) / state.uplink_bits_per_second  # Eq. 7
        downlink = 0.0
        if state.downlink_bits_per_second is not None:
            downlink = (L.bit_length() + token_bits) / state.downlink_bits_per_second  # Eq. 8
        return L * self.draft_seconds_per_token + uplink + verify + downlink  # Eq. 9

    def iteration_tokens(self, state: int, choice: DraftChoice) -> float:
        """Return the expected number of tokens in an iteration, 1 + a + ... + a^L (Eq. 14).

        The first term is the token that the server adds. The acceptance rate a is the state's rate
        at the chosen resolution.
        """
        a = float(
            self.states[state].acceptance_rates[self.resolutions.tolist().index(choice.resolution)]
        )
        return math.fsum(a**n for n in range(choice.draft_length + 1))

    def evaluate(self, plan: DraftControlPlan) -> Evaluation:
        """Return a policy's long-run number of tokens per second, E[N] / E[T].

        Both expectations use the stationary distribution of the Markov chain. The evaluation
        reports two terms: the tokens that the server adds, one per iteration, and the accepted
        draft tokens.
        """
        self.expect_fit(plan)
        shares = self.stationary_distribution.tolist()
        tokens = math.fsum(
            shares[s] * self.iteration_tokens(s, choice) for s, choice in enumerate(plan.policy)
        )
        seconds = math.fsum(
            shares[s] * self.iteration_seconds(s, choice) for s, choice in enumerate(plan.policy)
        )
        terms = {
            "own_tokens_per_second": 1.0 / seconds,
            "accepted_draft_tokens_per_second": (tokens - 1.0) / seconds,
        }
        return Evaluation(tokens / seconds, terms)

    def violations(self, plan: DraftControlPlan) -> list[str]:
        """Return a message for each state whose draft length is outside the allowed range."""
        found = super().violations(plan)
        if found:
            return found
        shortest, longest = self.draft_lengths
        return [
            f"policy[{state}].draft_length: expected {shortest} to {longest}, got"
            f" {choice.draft_length}"
            for state, choice in enumerate(plan.policy)
            if not shortest <= choice.draft_length <= longest
        ]

    def _defects(self, plan: DraftControlPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem."""
        if len(plan.policy) != len(self.states):
            return [
                f"policy: expected {len(self.states)} entries, one per state, got"
                f" {len(plan.policy)}"
            ]
        allowed = self.resolutions.tolist()
        longest = self.draft_lengths[1]
        for state, choice in enumerate(plan.policy):
            if choice.draft_length > longest and isinstance(self.verify_seconds, SecondsByLength):
                return [
                    f"policy[{state}].draft_length: expected at most {longest}, the last length in"
                    f" verify_seconds, got {choice.draft_length}"
                ]
            if choice.resolution not in allowed:
                return [
                    f"policy[{state}].resolution: expected {'one of ' * (len(allowed) > 1)}"
                    f"{', '.join(map(str, allowed))}, got {choice.resolution}"
                ]
        return []
