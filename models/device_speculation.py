"""Speculation on a device that drafts for the cloud: parallel drafting, and what a round costs (paper 4).

While the cloud verifies, the device goes on from the top-k candidates for the token that may be corrected, for as many
steps as fit (Eq. 6). If the verifier's token is among the candidates, that many steps of the next draft are done.

mu_i of Eq. 6, the tokens of the draft, is another thing than mu^t of Eq. 1, the tokens of a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from specopt.models.errors import InvalidInput
from specopt.models.fields import Checked, Column, Floats, NonNegative, Positive, Unit, check, describe


@dataclass(frozen=True, kw_only=True)
class RoundCost(Checked):
    """Seconds of a round of speculative decoding of one device.

    Parameters
    ----------
    draft_seconds
        gamma, per drafted token.
    uplink_bytes_per_second, downlink_bytes_per_second, bytes_per_token
        The link, and A.
    cloud_seconds, cloud_seconds_per_token
        In-cloud delay of a draft: a constant, g(mu) and waiting, and what each of its tokens adds.
    fixed_seconds
        What any round costs besides: latency both ways, the device's own layers.
    """

    draft_seconds: Positive
    uplink_bytes_per_second: Positive
    downlink_bytes_per_second: Positive
    bytes_per_token: NonNegative
    cloud_seconds: NonNegative
    cloud_seconds_per_token: NonNegative = 0.0
    fixed_seconds: NonNegative = 0.0

    def verify_seconds(self, sent_tokens: float) -> float:
        """Return the time from the end of the draft to the verifier's answer."""
        link = 1.0 / self.uplink_bytes_per_second + 1.0 / self.downlink_bytes_per_second
        per_token = self.bytes_per_token * link + self.cloud_seconds_per_token
        return self.fixed_seconds + self.cloud_seconds + sent_tokens * per_token


def parallel_steps(
    draft_tokens: int,
    *,
    bytes_per_token: float,
    uplink_bytes_per_second: float,
    downlink_bytes_per_second: float,
    cloud_seconds: float,
    draft_seconds: float,
) -> int:
    """Return lambda of Eq. 6: steps of parallel drafting that fit while the cloud verifies, without any waiting there.

    Parameters
    ----------
    draft_tokens
        mu_i, tokens of the draft that is verified.
    bytes_per_token
        A.
    uplink_bytes_per_second, downlink_bytes_per_second
        beta_up, beta_down.
    cloud_seconds
        g(mu).
    draft_seconds
        gamma, seconds per step.

    Examples
    --------
    >>> parallel_steps(
    ...     3, bytes_per_token=8192.0, uplink_bytes_per_second=7.5e6, downlink_bytes_per_second=12.5e6,
    ...     cloud_seconds=0.027, draft_seconds=0.008,
    ... )
    4
    """
    if not draft_seconds > 0.0:
        raise InvalidInput(f"draft_seconds: expected a number > 0, got {describe(draft_seconds)}")
    link = draft_tokens * bytes_per_token
    spent = link / uplink_bytes_per_second + cloud_seconds + link / downlink_bytes_per_second
    return math.floor(spent / draft_seconds)


@dataclass(frozen=True, kw_only=True, eq=False)
class ParallelDrafting:
    """What a device may gain by drafting while the cloud verifies.

    Parameters
    ----------
    cost
        Seconds of a round.
    drafted
        Law of the tokens of a draft: probability of 1, 2, ... tokens.
    gained_tokens
        Mean tokens of a round, the verifier's own included; parallel drafting changes the time of a round only.
    reach
        Chance that everything but the last draft token is accepted, so that the verifier's next token is one for
        which there are candidates.
    candidates
        Given that: chance that the verifier's token is the first, second, ... candidate; a sum of at most 1.
    seconds_per_candidate
        What each candidate beyond the first adds to a step, as a share of gamma.
    start_seconds
        What parallel drafting costs a round, whatever its steps: the answer waits for it.
    step_seconds
        What every step costs a round even if it ends in time (energy, contention), in seconds.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or a law does not sum to 1.
    """

    cost: RoundCost
    drafted: Annotated[Floats, Column(Unit, "length")]
    gained_tokens: Annotated[float, Meta(ge=1)]
    reach: Unit
    candidates: Annotated[Floats, Column(Unit, "candidate")]
    seconds_per_candidate: NonNegative = 0.0
    start_seconds: NonNegative = 0.0
    step_seconds: NonNegative = 0.0

    def __post_init__(self) -> None:
        check(self)
        if abs(float(self.drafted.sum()) - 1.0) > 1e-9:
            raise InvalidInput(f"drafted: expected a sum of 1, got {float(self.drafted.sum())}")
        if float(self.candidates.sum()) > 1.0 + 1e-9:
            raise InvalidInput(f"candidates: expected a sum of at most 1, got {float(self.candidates.sum())}")

    def hit_probability(self, k: int) -> float:
        """Return the chance that the draft from one of the top-k candidates can be used."""
        return self.reach * float(self.candidates[:k].sum())

    def step_cost(self, k: int) -> float:
        """Return the seconds of a parallel step that extends k candidates at once."""
        return self.cost.draft_seconds * (1.0 + self.seconds_per_candidate * (k - 1))

    def round_seconds(self, steps: int, k: int) -> float:
        """Return the expected time of a round with `steps` steps of parallel drafting from k candidates.

        A step that is under way when the answer comes is finished first; what is drafted beyond the next draft's
        length is wasted. Without steps or candidates it is the round without parallel drafting.

        Raises
        ------
        InvalidInput
            If `steps` or `k` is negative, or there are fewer candidates.
        """
        if steps < 0:
            raise InvalidInput(f"steps: expected an integer >= 0, got {describe(steps)}")
        if not 0 <= k <= len(self.candidates):
            raise InvalidInput(f"k: expected an integer from 0 to {len(self.candidates)}, got {describe(k)}")
        parallel = steps > 0 and k > 0
        hit = self.hit_probability(k) if parallel else 0.0
        busy = self.start_seconds + steps * self.step_cost(k) if parallel else 0.0
        extra = steps * self.step_seconds if parallel else 0.0
        total = 0.0
        for index, probability in enumerate(self.drafted.tolist()):
            tokens = index + 1
            hidden = min(steps, tokens) if parallel else 0
            drafting = (hit * (tokens - hidden) + (1.0 - hit) * tokens) * self.cost.draft_seconds
            total += probability * (drafting + max(self.cost.verify_seconds(tokens), busy) + extra)
        return total

    def tbt_seconds(self, steps: int, k: int) -> float:
        """Return the mean time between tokens: seconds of a round over tokens of a round."""
        return self.round_seconds(steps, k) / self.gained_tokens


@dataclass(frozen=True, kw_only=True)
class DraftingChoice(Checked):
    """A number of steps and of candidates.

    Parameters
    ----------
    steps, candidates
        lambda and k; 0 and 0: no parallel drafting.
    tbt_seconds
        Mean time between tokens.
    """

    steps: Annotated[int, Meta(ge=0)]
    candidates: Annotated[int, Meta(ge=0)]
    tbt_seconds: Positive
