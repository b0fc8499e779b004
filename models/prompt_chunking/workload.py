"""Prompts that many devices send to one cloud (paper 4, Sec. 4.1), and the schemes that serve
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Column,
    Floats,
    FloatsLike,
    Given,
    Ints,
    IntsLike,
    NonNegative,
    Positive,
    PositiveInt,
    TokenCount,
    Unit,
    check,
    optional,
    required,
)
from specopt.models.pass_time import CloudDelay
from specopt.models.workload import Workload

Chunking = Literal["whole", "equation-3", "server", "planned"]
"""Who cuts prompts: nobody; the device by Eq. 3; the server, after one message; a method that is
given.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptWorkload(Workload):
    """Requests of many devices: a Poisson process, every request with a link and a device of its
    own.

    Devices that have several requests at a time are not modelled: no two requests share a link or a
    draft model.

    Parameters
    ----------
    requests_per_second
        Rate of the Poisson process.
    prompt_mean_tokens, prompt_std_tokens
        Lognormal prompt lengths, rounded and cut at `most_prompt_tokens`.
    most_prompt_tokens
        Longest prompt.
    prompt_tokens
        Prompt lengths to draw from instead, a trace; None: lognormal.
    output_tokens
        Length of every response, the first token included.
    bytes_per_token
        A, the size of the hidden state of a token.
    uplink_bytes_per_second, downlink_bytes_per_second
        Lowest and highest bandwidth; uniform in between.
    draft_seconds
        gamma, seconds per drafted token, of kinds of devices that are equally frequent.
    cloud_delay
        g: seconds of a batch by its tokens, on one GPU.
    pipeline_length
        P, GPUs in the pipeline; each takes g/P.
    background_tokens
        Tokens that every batch has besides those of the requests.
    local_overhead_seconds, local_seconds_per_token, message_overhead_seconds, link_latency_seconds,
    head_seconds
        As in `PromptChunkingProblem`; a round of decoding pays them too.
    tree_tokens_per_round, draft_tokens_per_round
        Tokens that a round gains with a tree of candidates, and with drafts that end at a
        threshold: how well those guess these responses ("accept length", Table 4).
    server_chunk_tokens
        Budget of a batch for a server that chunks.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or a bandwidth's bounds are not two numbers in increasing
        order.

    Examples
    --------
    >>> from specopt import CloudDelay, PromptWorkload, simulate
    >>> workload = PromptWorkload(
    ...     requests_per_second=2.0,
    ...     prompt_mean_tokens=350,
    ...     prompt_std_tokens=120,
    ...     bytes_per_token=8192,
    ...     uplink_bytes_per_second=[5e6, 1e7],
    ...     downlink_bytes_per_second=[1e7, 1.5e7],
    ...     draft_seconds=[0.01, 0.02],
    ...     cloud_delay=CloudDelay(tokens=[0, 2048], seconds=[0.02, 0.1]),
    ... )
    >>> simulate(workload, "hat", replications=2, requests=20).replications
    2
    """

    kind = "prompt-chunking-workload"

    requests_per_second: Positive
    prompt_mean_tokens: Positive
    prompt_std_tokens: NonNegative
    bytes_per_token: Positive
    uplink_bytes_per_second: Given[Annotated[Floats, Column(Positive, "uplink", 2)], FloatsLike] = (
        required()
    )
    downlink_bytes_per_second: Given[
        Annotated[Floats, Column(Positive, "downlink", 2)], FloatsLike
    ] = required()
    draft_seconds: Given[Annotated[Floats, Column(Positive, "device")], FloatsLike] = required()
    cloud_delay: CloudDelay
    pipeline_length: PositiveInt = 4
    most_prompt_tokens: TokenCount = 4096
    prompt_tokens: Given[Annotated[Ints, Column(TokenCount, "trace")] | None, IntsLike | None] = (
        optional()
    )
    output_tokens: TokenCount = 128
    background_tokens: NonNegative = 0.0
    local_overhead_seconds: NonNegative = 0.0
    local_seconds_per_token: NonNegative = 0.0
    message_overhead_seconds: NonNegative = 0.0
    link_latency_seconds: NonNegative = 0.0
    head_seconds: NonNegative = 0.0
    tree_tokens_per_round: Annotated[float, Meta(gt=1)] = 1.89
    draft_tokens_per_round: Annotated[float, Meta(gt=1)] = 2.06
    server_chunk_tokens: PositiveInt = 128

    def __post_init__(self) -> None:
        check(self)
        for name in ("uplink_bytes_per_second", "downlink_bytes_per_second"):
            bounds = getattr(self, name)
            if len(bounds) != 2 or bounds[0] > bounds[1]:
                raise InvalidInput(
                    f"{name}: expected the lowest and the highest bandwidth, got {bounds.tolist()}"
                )

    def lengths(self, count: int, random: np.random.Generator) -> Ints:
        """Draw prompt lengths, tokens (count,)."""
        if self.prompt_tokens is not None:
            return random.choice(self.prompt_tokens, count)
        variance = math.log1p((self.prompt_std_tokens / self.prompt_mean_tokens) ** 2)
        raw = random.lognormal(
            math.log(self.prompt_mean_tokens) - 0.5 * variance, math.sqrt(variance), count
        )
        return np.clip(np.rint(raw), 1, self.most_prompt_tokens).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """What rounds of decoding are like: a law over (drafted, sent, gained) tokens.

    Parameters
    ----------
    drafted, sent, gained
        By kind of round: tokens drafted one after the other, tokens whose hidden states cross the
        link and enter a batch, and tokens that the response gains, the verifier's own included.
    probabilities
        Of each kind.
    hit
        By kind: chance that parallel drafting has begun the draft that follows.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or the probabilities do not sum to 1.
    """

    drafted: Given[Annotated[Ints, Column(Annotated[int, Meta(ge=0)], "round")], IntsLike] = (
        required()
    )
    sent: Given[Annotated[Ints, Column(TokenCount, "round")], IntsLike] = required()
    gained: Given[Annotated[Ints, Column(TokenCount, "round")], IntsLike] = required()
    probabilities: Given[Annotated[Floats, Column(Unit, "round")], FloatsLike] = required()
    hit: Given[Annotated[Floats, Column(Unit, "round")] | None, FloatsLike | None] = optional()

    def __post_init__(self) -> None:
        check(self)
        if abs(float(self.probabilities.sum()) - 1.0) > 1e-9:
            raise InvalidInput(
                f"probabilities: expected a sum of 1, got {float(self.probabilities.sum())}"
            )

    @property
    def mean_gained(self) -> float:
        """Expected tokens per round: the "accept length" of Table 4."""
        return float(self.probabilities @ self.gained)

    @classmethod
    def one_by_one(cls) -> Rounds:
        """Return the rounds of U-shape: one token each, no draft."""
        return cls(
            drafted=np.zeros(1, int),
            sent=np.ones(1, int),
            gained=np.ones(1, int),
            probabilities=np.ones(1),
        )

    @classmethod
    def tree(cls, sent: int, mean_gained: float, most_gained: int = 5) -> Rounds:
        """Return rounds that send a tree of `sent` tokens and gain 1 to `most_gained` with the
        given mean.

        Gains follow a truncated geometric law, the simplest one with a given mean; its heads draft
        at no cost.

        Raises
        ------
        InvalidInput
            If the mean is not above 1 and below the middle of the range.
        """
        if not 1.0 < mean_gained < 0.5 * (1 + most_gained):
            raise InvalidInput(
                f"mean_gained: expected a number in (1, {0.5 * (1 + most_gained):g}), got"
                f" {mean_gained}"
            )
        gains = np.arange(1, most_gained + 1)
        low, high = 0.0, 1.0
        for _ in range(100):
            rate = 0.5 * (low + high)
            powers = rate ** (gains - 1.0)
            law = np.asarray(powers / powers.sum(), np.float64)
            low, high = (rate, high) if float(law @ gains) < mean_gained else (low, rate)
        count = len(gains)
        return cls(
            drafted=np.zeros(count, int), sent=np.full(count, sent), gained=gains, probabilities=law
        )

    @classmethod
    def threshold(
        cls,
        mean_gained: float,
        *,
        stop: float = 0.5,
        most_drafted: int = 8,
        candidates: float = 0.6,
    ) -> Rounds:
        """Return rounds of drafts that end at the first token below a threshold, with a given
        accept length.

        Tokens above the threshold are accepted with one probability a. The last one is below the
        threshold and has a lower one, (1 - stop) a. The mean gain determines a.

        Parameters
        ----------
        mean_gained
            Tokens per round, the verifier's own included: the accept length of Table 4.
        stop
            Chance that a token is below the threshold.
        most_drafted
            Longest draft.
        candidates
            Chance that the top-k candidates hold the token that follows, given that all before it
            were accepted.

        Raises
        ------
        InvalidInput
            If no such acceptance exists, or a value is outside its domain.
        """
        mean_gained = number("mean_gained", mean_gained, above=1)
        stop, candidates = (
            number("stop", stop, above=0, below=1),
            number("candidates", candidates, 0, 1),
        )
        most_drafted = integer("most_drafted", most_drafted, 1, 1000)
        low, high = 0.0, 1.0
        for _ in range(60):
            rate = 0.5 * (low + high)
            short = _threshold(rate, stop, most_drafted, candidates).mean_gained < mean_gained
            low, high = (rate, high) if short else (low, rate)
        found = _threshold(high, stop, most_drafted, candidates)
        if abs(found.mean_gained - mean_gained) > 1e-6:
            most = f"{found.mean_gained:.3g}"
            raise InvalidInput(
                f"mean_gained: expected up to {most} with these drafts, got {mean_gained}"
            )
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Scheme(Checked):
    """How a framework serves requests.

    Parameters
    ----------
    name
        For tables and legends.
    chunking
        Who cuts prompts.
    rounds
        What a round of decoding is like.
    server_chunk_tokens
        With "server": tokens that the prompts and rounds of one batch may have together (rounds
        always go first).
    parallel_drafting
        Whether devices draft on while they wait for the cloud.
    parallel_steps
        How many steps; None: as many as Eq. 6 says.
    parallel_cost
        Seconds of such a step over those of an ordinary one: it extends several candidates.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    name: str
    chunking: Chunking = "whole"
    rounds: Rounds
    server_chunk_tokens: PositiveInt = 128
    parallel_drafting: bool = False
    parallel_steps: Annotated[int, Meta(ge=0, le=10_000)] | None = None
    parallel_cost: Annotated[float, Meta(ge=1)] = 1.0


def _threshold(rate: float, stop: float, most_drafted: int, candidates: float) -> Rounds:
    """Return the rounds for an acceptance probability above the threshold."""
    rows = []
    for length in range(1, most_drafted + 1):
        stops = 1.0 if length == most_drafted else stop
        chance = (1.0 - stop) ** (length - 1) * stops
        last = (1.0 - stop) * rate
        for gained in range(1, length + 2):  # the last draft token is the length-th
            if gained < length:
                share, hit = rate ** (gained - 1) * (1.0 - rate), 0.0
            elif gained == length:
                share, hit = rate ** (length - 1) * (1.0 - last), candidates
            else:
                share, hit = rate ** (length - 1) * last, candidates
            rows.append((length, length, gained, chance * share, hit))
    table = np.array(rows)
    law = table[:, 3] / table[:, 3].sum()
    return Rounds(
        drafted=table[:, 0].astype(np.int64),
        sent=table[:, 1].astype(np.int64),
        gained=table[:, 2].astype(np.int64),
        probabilities=law,
        hit=table[:, 4],
    )
