"""Workloads of prompts that many devices send to one cloud (paper 4, Sec. 4.1), and the schemes
that serve these prompts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from specopt.models.acceptance import bisected
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
    Positives,
    TokenCount,
    TokenCounts,
    Unit,
    Units,
    check,
    optional,
    required,
)
from specopt.models.pass_time import CloudDelay
from specopt.models.workload import Workload

Chunking = Literal["whole", "equation-3", "server", "planned"]
"""How prompts are split: not at all, by the device with Eq. 3, by the server after the prompt
arrives in one message, or by a given method.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptWorkload(Workload):
    """A workload of requests that arrive as a Poisson process. Every request has a separate device
    and link.

    The model does not include devices that send several requests at a time: no two requests share a
    link or a draft model.

    Parameters
    ----------
    requests_per_second
        Rate of the Poisson process.
    prompt_mean_tokens
        Mean of the lognormal prompt lengths, before rounding and truncation.
    prompt_std_tokens
        Standard deviation of the lognormal prompt lengths, before rounding and truncation.
    most_prompt_tokens
        Maximum prompt length; longer prompts are truncated.
    prompt_tokens
        Prompt lengths of a trace, from which lengths are drawn; None draws lognormal lengths.
    output_tokens
        Length of every response, including the first token.
    bytes_per_token
        Size A of a token's hidden state.
    uplink_bytes_per_second
        Minimum and maximum uplink rate; rates are uniformly distributed.
    downlink_bytes_per_second
        Minimum and maximum downlink rate; rates are uniformly distributed.
    draft_seconds
        Drafting time gamma per token of each type of device; all types are equally frequent.
    cloud_delay
        Delay g of a batch on one GPU, as a function of its number of tokens.
    pipeline_length
        Number P of GPUs in the pipeline; a batch takes g/P on each GPU.
    background_tokens
        Number of tokens in every batch in addition to the tokens of the requests.
    local_overhead_seconds
        Constant computation time of the device per chunk, as in `PromptChunkingProblem`; also
        applies to each round.
    local_seconds_per_token
        Computation time of the device per token, as in `PromptChunkingProblem`; also applies to
        each round.
    message_overhead_seconds
        Overhead of each message, as in `PromptChunkingProblem`; also applies to each round.
    link_latency_seconds
        One-way latency, as in `PromptChunkingProblem`; also applies to each round.
    head_seconds
        Computation time at the end, as in `PromptChunkingProblem`; also applies to each round.
    tree_tokens_per_round
        Mean number of tokens per round with a tree of candidates ("accept length", Table 4).
    draft_tokens_per_round
        Mean number of tokens per round with drafts that end at a threshold ("accept length", Table
        4).
    server_chunk_tokens
        Token budget of a batch if the server splits prompts.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or if a bandwidth is not a minimum followed by a maximum.

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
    draft_seconds: Positives = required()
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
                    f"{name}: expected the minimum and the maximum bandwidth, got {bounds.tolist()}"
                )

    def lengths(self, count: int, random: np.random.Generator) -> Ints:
        """Draw `count` random prompt lengths, in tokens."""
        if self.prompt_tokens is not None:
            return random.choice(self.prompt_tokens, count)
        variance = math.log1p((self.prompt_std_tokens / self.prompt_mean_tokens) ** 2)
        raw = random.lognormal(
            math.log(self.prompt_mean_tokens) - 0.5 * variance, math.sqrt(variance), count
        )
        return np.clip(np.rint(raw), 1, self.most_prompt_tokens).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A probability distribution over types of decoding rounds. Each type has fixed numbers of
    drafted, sent and gained tokens.

    Parameters
    ----------
    drafted
        Number of tokens drafted sequentially, by type of round.
    sent
        Number of tokens whose hidden states are sent and enter a batch, by type of round.
    gained
        Number of tokens that the response gains, including the verifier's own token, by type of
        round.
    probabilities
        Probability of each type of round.
    hit
        Probability that parallel drafting has already begun the next draft, by type of round.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or if the probabilities do not sum to 1.
    """

    drafted: Given[Annotated[Ints, Column(Annotated[int, Meta(ge=0)])], IntsLike] = required()
    sent: TokenCounts = required()
    gained: TokenCounts = required()
    probabilities: Units = required()
    hit: Given[Annotated[Floats, Column(Unit)] | None, FloatsLike | None] = optional()

    def __post_init__(self) -> None:
        check(self)
        if abs(float(self.probabilities.sum()) - 1.0) > 1e-9:
            raise InvalidInput(
                f"probabilities: expected a sum of 1, got {float(self.probabilities.sum())}"
            )

    @property
    def mean_gained(self) -> float:
        """Mean number of tokens gained per round: the "accept length" of Table 4."""
        return float(self.probabilities @ self.gained)

    @classmethod
    def one_by_one(cls) -> Rounds:
        """Return the rounds of the U-shape scheme, which gain one token each and have no drafts."""
        return cls(
            drafted=np.zeros(1, int),
            sent=np.ones(1, int),
            gained=np.ones(1, int),
            probabilities=np.ones(1),
        )

    @classmethod
    def tree(cls, sent: int, mean_gained: float, max_gained: int = 5) -> Rounds:
        """Return rounds that send a tree of `sent` tokens. Each round gains 1 to `max_gained`
        tokens, and `mean_gained` tokens on average.

        The gains follow a truncated geometric distribution, which is determined by its mean.
        Drafting with the heads is assumed to take no time.

        Raises
        ------
        InvalidInput
            If the mean is not above 1 and below the middle of the range.
        """
        if not 1.0 < mean_gained < 0.5 * (1 + max_gained):
            raise InvalidInput(
                f"mean_gained: expected a number in (1, {0.5 * (1 + max_gained):g}), got"
                f" {mean_gained}"
            )
        gains = np.arange(1, max_gained + 1)

        def shares(rate: float) -> Floats:
            powers = rate ** (gains - 1.0)
            return np.asarray(powers / powers.sum(), np.float64)

        rate = bisected(lambda rate: float(shares(rate) @ gains) < mean_gained)
        count = len(gains)
        return cls(
            drafted=np.zeros(count, int),
            sent=np.full(count, sent),
            gained=gains,
            probabilities=shares(rate),
        )

    @classmethod
    def threshold(
        cls,
        mean_gained: float,
        *,
        stop: float = 0.5,
        max_drafted: int = 8,
        candidates: float = 0.6,
    ) -> Rounds:
        """Return rounds whose drafts end at the first token below a confidence threshold and that
        have a given accept length.

        Tokens above the threshold are accepted with a common probability a. The last token is below
        the threshold and is accepted with the lower probability (1 - stop) a. The mean gain
        determines a.

        Parameters
        ----------
        mean_gained
            Mean number of tokens per round, including the verifier's own token: the accept length
            of Table 4.
        stop
            Probability that a token is below the threshold.
        max_drafted
            Maximum draft length.
        candidates
            Probability that the top-k candidates contain the next token, given that all its
            predecessors were accepted.

        Raises
        ------
        InvalidInput
            If no acceptance probability yields this mean, or if a value is outside its domain.
        """
        mean_gained = number("mean_gained", mean_gained, above=1)
        stop = number("stop", stop, above=0, below=1)
        candidates = number("candidates", candidates, 0, 1)
        max_drafted = integer("max_drafted", max_drafted, 1, 1000)
        rate = bisected(
            lambda rate: _threshold(rate, stop, max_drafted, candidates).mean_gained < mean_gained
        )
        found = _threshold(rate, stop, max_drafted, candidates)
        if abs(found.mean_gained - mean_gained) > 1e-6:
            most = f"{found.mean_gained:.3g}"
            raise InvalidInput(
                f"mean_gained: expected at most {most} with these drafts, got {mean_gained}"
            )
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Scheme(Checked):
    """The scheme that a framework uses to serve requests.

    Parameters
    ----------
    name
        Name in tables and legends.
    chunking
        Way in which prompts are split: "whole", "equation-3", "server" or "planned".
    rounds
        Rounds of decoding.
    server_chunk_tokens
        Maximum number of prompt and round tokens in a batch, with chunking "server". Rounds always
        take precedence over prompts.
    parallel_drafting
        Whether devices continue drafting while they wait for the cloud.
    parallel_steps
        Number of parallel drafting steps; None means the number computed by Eq. 6.
    parallel_cost
        Ratio of the duration of a parallel drafting step, which extends several candidates, to the
        duration of an ordinary step.

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


def _threshold(rate: float, stop: float, max_drafted: int, candidates: float) -> Rounds:
    """Return the rounds for a given acceptance probability of tokens above the threshold."""
    rows = []
    for length in range(1, max_drafted + 1):
        stops = 1.0 if length == max_drafted else stop
        probability = (1.0 - stop) ** (length - 1) * stops
        last = (1.0 - stop) * rate
        for gained in range(1, length + 2):  # the last draft token is token number `length`
            if gained < length:
                share = rate ** (gained - 1) * (1.0 - rate)
                hit = 0.0
            elif gained == length:
                share = rate ** (length - 1) * (1.0 - last)
                hit = candidates
            else:
                share = rate ** (length - 1) * last
                hit = candidates
            rows.append((length, length, gained, probability * share, hit))
    table = np.array(rows)
    shares = table[:, 3] / table[:, 3].sum()
    return Rounds(
        drafted=table[:, 0].astype(np.int64),
        sent=table[:, 1].astype(np.int64),
        gained=table[:, 2].astype(np.int64),
        probabilities=shares,
        hit=table[:, 4],
    )
