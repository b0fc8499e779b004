"""Workloads in which many devices send prompts to one cloud, and schemes that serve the requests.

The workloads follow paper 4, Sec. 4.1.
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
"""Ways to split prompts: not at all ("whole"), by the device according to Eq. 3 ("equation-3"), by
the server after the whole prompt has arrived ("server"), or by a solution method ("planned").
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptWorkload(Workload):
    """A workload in which requests arrive according to a Poisson process.

    Every request has its own device. The model does not include devices that send several requests
    at a time, so no two requests share a link or a draft model.

    Parameters
    ----------
    requests_per_second
        Rate of the Poisson process, in requests per second.
    prompt_mean_tokens
        Mean of the log-normal prompt lengths, before rounding and truncation.
    prompt_std_tokens
        Standard deviation of the log-normal prompt lengths, before rounding and truncation.
    most_prompt_tokens
        Maximum prompt length. Longer prompts are truncated.
    prompt_tokens
        Prompt lengths from a trace, from which lengths are sampled. None means that lengths are
        drawn from a log-normal distribution.
    output_tokens
        Length of every response in tokens, including the first token.
    bytes_per_token
        Size A of a token's hidden state, in bytes.
    uplink_bytes_per_second
        Minimum and maximum uplink rate in bytes per second. Rates are uniformly distributed.
    downlink_bytes_per_second
        Minimum and maximum downlink rate in bytes per second. Rates are uniformly distributed.
    draft_seconds
        Drafting time gamma per token for each type of device, in seconds. All types are equally
        frequent.
    cloud_delay
        Delay g of a batch on one GPU, in seconds, as a function of its number of tokens.
    pipeline_length
        Number P of GPUs in the pipeline. A batch takes g/P on each GPU.
    background_tokens
        Number of tokens in every batch in addition to the tokens of the simulated requests.
    local_overhead_seconds
        Constant computation time of the device per chunk and per decoding round, as in
        `PromptChunkingProblem`.
    local_seconds_per_token
        Computation time of the device per token in a chunk or in a decoding round, as in
        `PromptChunkingProblem`.
    message_overhead_seconds
        Overhead of each message, for chunks and for decoding rounds, as in `PromptChunkingProblem`.
    link_latency_seconds
        One-way latency of the link, for chunks and for decoding rounds, as in
        `PromptChunkingProblem`.
    head_seconds
        Computation time of the device's last layers, per prompt and per decoding round, as in
        `PromptChunkingProblem`.
    tree_tokens_per_round
        Mean number of tokens per round if drafts are trees of candidates ("accept length", Table
        4).
    draft_tokens_per_round
        Mean number of tokens per round if drafts end at a confidence threshold ("accept length",
        Table 4).
    server_chunk_tokens
        Token budget of a batch if the server splits prompts. Prompts receive the part of the budget
        that decoding rounds do not use.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or if a pair of rates is not a minimum followed by a
        maximum.

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
        """Draw `count` random prompt lengths in tokens, from the trace or the log-normal
        distribution.
        """
        if self.prompt_tokens is not None:
            return random.choice(self.prompt_tokens, count)
        variance = math.log1p((self.prompt_std_tokens / self.prompt_mean_tokens) ** 2)
        raw = random.lognormal(
            math.log(self.prompt_mean_tokens) - 0.5 * variance, math.sqrt(variance), count
        )
        return np.clip(np.rint(raw), 1, self.most_prompt_tokens).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A probability distribution over types of decoding rounds.

    All rounds of a type have the same numbers of drafted, sent and gained tokens. Every field has
    one entry per type.

    Parameters
    ----------
    drafted
        Number of tokens that are drafted sequentially.
    sent
        Number of tokens whose hidden states are sent to the cloud and processed in a batch.
    gained
        Number of tokens that the response gains, including the token that the verifier adds.
    probabilities
        Probability of each type of round.
    hit
        Probability that parallel drafting has already begun the next draft. None means 0 for every
        type.

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
        """Mean number of tokens that the response gains per round. Table 4 calls this the "accept
        length".
        """
        return float(self.probabilities @ self.gained)

    @classmethod
    def one_by_one(cls) -> Rounds:
        """Return the rounds of the U-shape scheme. Each round gains one token, and there are no
        drafts.
        """
        return cls(
            drafted=np.zeros(1, int),
            sent=np.ones(1, int),
            gained=np.ones(1, int),
            probabilities=np.ones(1),
        )

    @classmethod
    def tree(cls, sent: int, mean_gained: float, max_gained: int = 5) -> Rounds:
        """Return rounds in which the device sends a tree of `sent` candidate tokens.

        Each round gains from 1 to `max_gained` tokens. The gains follow a truncated geometric
        distribution with mean `mean_gained`. Drafting with draft heads is assumed to take no time.

        Raises
        ------
        InvalidInput
            If `mean_gained` is not greater than 1 and less than (1 + `max_gained`) / 2.
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
        """Return rounds in which drafts end at the first token below a confidence threshold.

        Tokens above the threshold are accepted with a common probability a. The last token is below
        the threshold and is accepted with the lower probability (1 - stop) a. The value of a is
        determined by `mean_gained`.

        Parameters
        ----------
        mean_gained
            Mean number of tokens that the response gains per round, including the token that the
            verifier adds. Table 4 calls this the accept length.
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
            If no acceptance probability yields `mean_gained`, or if a value is outside its domain.
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
    """A serving scheme, which determines how prompts are split and how responses are decoded.

    Parameters
    ----------
    name
        Name of the scheme in tables and legends.
    chunking
        Way to split prompts: "whole", "equation-3", "server" or "planned".
    rounds
        Distribution of decoding rounds.
    server_chunk_tokens
        Token budget of a batch if the server splits prompts. A batch contains all waiting decoding
        rounds, and prompts receive the rest of the budget, but at least one token.
    parallel_drafting
        Whether devices continue drafting while they wait for the cloud.
    parallel_steps
        Number of drafting steps while a device waits for the cloud. None means that Eq. 6
        determines the number.
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
    """Return the rounds of `Rounds.threshold` if tokens above the threshold are accepted with
    probability `rate`.
    """
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
