"""Workloads for simulations in which many devices draft responses and share one verifier.

The workloads follow paper 2, Sec. 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Column,
    Floats,
    FloatsLike,
    Given,
    NonNegative,
    NonNegatives,
    Positive,
    Positives,
    TokenCount,
    Unit,
    check,
    required,
)
from specopt.models.pass_time import VerificationTime
from specopt.models.workload import Workload


@dataclass(frozen=True, kw_only=True)
class DraftPredictor(Checked):
    """A rejection predictor with fixed error probabilities (Sec. 4.1). After each draft token, the
    predictor decides whether the device continues drafting.

    Parameters
    ----------
    false_accept
        Probability of continuing at the first token that the verifier will reject.
    false_reject
        Probability of stopping at a token that the verifier will accept.
    false_accept_after
        Probability of continuing at a token after the first rejection.
    """

    false_accept: Unit
    false_reject: Unit
    false_accept_after: Unit


@dataclass(frozen=True, kw_only=True, eq=False)
class VerificationWorkload(Workload):
    """A workload of devices that draft responses and share one verifier.

    A device waits for a think time and then starts a response. Until the response is complete, the
    device drafts and sends one window of tokens at a time. The device's class determines the
    required mean speed of each response. The number of devices and the policy are parameters of the
    simulation, not of the workload.

    Parameters
    ----------
    class_speeds
        Required speed tau of responses in each class, in tokens per second.
    class_shares
        Share of devices in each class. The shares sum to 1.
    estimator
        Estimator for a batch's duration (Eq. 18-19).
    acceptance_rates
        Probability that the token at each position in the window is accepted, given that all its
        predecessors were accepted. The number of entries is the window length K.
    prompt_median_tokens
        Median of the log-normal prompt lengths.
    prompt_sigma
        Standard deviation of the logarithm of the prompt lengths.
    response_median_tokens
        Median of the log-normal response lengths.
    response_sigma
        Standard deviation of the logarithm of the response lengths.
    most_prompt_tokens
        Maximum prompt length. Longer prompts are truncated.
    most_response_tokens
        Maximum response length. Longer responses are truncated.
    draft_tokens_per_second
        Drafting speed of each device, in tokens per second.
    uplink_seconds
        Network delay from a device to the verifier, in seconds.
    downlink_seconds
        Network delay from the verifier to a device, in seconds.
    jitter_seconds
        Mean of an exponentially distributed delay that is added to each network delay, in seconds.
    think_seconds
        Mean of the exponentially distributed think time between consecutive responses, in seconds.
    prefix_cache
        Whether the verifier keeps the KV cache of a response between its verifications.
    kv_bytes_per_token
        Size of the KV cache per token, in bytes.
    batch_memory_bytes
        Memory M available to a batch in bytes (Eq. 14). None means that the memory is unlimited.
    cache_memory_bytes
        Size of the prefix cache in bytes. The least recently used entries are evicted. None means
        that the size is unlimited.
    guard_seconds
        Guard time delta of Eq. 17, in seconds.
    time_noise
        Relative standard deviation of a batch's actual duration. The noise is log-normal and
        multiplies the estimated duration.
    predictor
        Predictor that stops drafting at the first token that it expects to be rejected. None means
        that the whole window is drafted and sent.

    Raises
    ------
    InvalidInput
        If a value is outside its domain, or if the shares do not sum to 1.

    Examples
    --------
    >>> from specopt import VerificationTime, VerificationWorkload, simulate
    >>> workload = VerificationWorkload(
    ...     class_speeds=[4.0, 8.0],
    ...     class_shares=[0.5, 0.5],
    ...     estimator=VerificationTime(
    ...         seconds_per_new_token=1e-4,
    ...         seconds_per_interaction=1e-8,
    ...         seconds_per_cached_token=1e-6,
    ...         overhead_seconds=0.02,
    ...     ),
    ...     acceptance_rates=[0.8, 0.7, 0.6],
    ...     prompt_median_tokens=200,
    ...     prompt_sigma=0.5,
    ...     response_median_tokens=60,
    ...     response_sigma=0.3,
    ...     draft_tokens_per_second=50,
    ...     uplink_seconds=0.02,
    ...     downlink_seconds=0.02,
    ...     jitter_seconds=0.005,
    ...     think_seconds=1.0,
    ...     kv_bytes_per_token=131072,
    ... )
    >>> simulate(workload, "fcfs", replications=2, devices=3, seconds=5.0).replications
    2
    """

    kind = "verification-batch-workload"

    class_speeds: Positives = required()
    class_shares: NonNegatives = required()
    estimator: VerificationTime
    acceptance_rates: Given[Annotated[Floats, Column(Unit, "window")], FloatsLike] = required()
    prompt_median_tokens: Positive
    prompt_sigma: NonNegative
    response_median_tokens: Positive
    response_sigma: NonNegative
    draft_tokens_per_second: Positive
    uplink_seconds: NonNegative
    downlink_seconds: NonNegative
    jitter_seconds: NonNegative
    think_seconds: NonNegative
    kv_bytes_per_token: Positive
    most_prompt_tokens: TokenCount = 8192
    most_response_tokens: TokenCount = 4096
    prefix_cache: bool = True
    batch_memory_bytes: Positive | None = None
    cache_memory_bytes: NonNegative | None = None
    guard_seconds: NonNegative = 0.0
    time_noise: NonNegative = 0.0
    predictor: DraftPredictor | None = None

    def __post_init__(self) -> None:
        check(self)
        if abs(float(self.class_shares.sum()) - 1.0) > 1e-9:
            raise InvalidInput(
                f"class_shares: expected a sum of 1, got {float(self.class_shares.sum())}"
            )
        if self.estimator.overhead_seconds <= 0.0:
            raise InvalidInput(
                "estimator: expected overhead_seconds > 0, so that every batch takes time, got 0"
            )
        longest = self.kv_bytes_per_token * (
            self.most_prompt_tokens + self.most_response_tokens + self.window
        )
        if self.batch_memory_bytes is not None and self.batch_memory_bytes < longest:
            raise InvalidInput(
                f"batch_memory_bytes: expected at least {longest:.6g} bytes, the size of the"
                f" longest request, got {self.batch_memory_bytes:.6g}"
            )

    @property
    def window(self) -> int:
        """Maximum number K of draft tokens that a device sends at a time."""
        return len(self.acceptance_rates)

    @property
    def expected_tokens(self) -> Floats:
        """Expected number of tokens gained by verifying 0, 1, ..., K draft tokens.

        The numbers include the token that the verifier adds. If there is a predictor, the
        expectation is conditional on its decisions and is computed by Bayes' rule from the
        distribution of the position of the first rejection.
        """
        rates = self.acceptance_rates
        window = self.window
        predictor = self.predictor
        if predictor is None:
            return np.cumsum(np.concatenate([[1.0], np.cumprod(rates)]))
        found = np.empty(window + 1)
        for sent in range(window + 1):
            # before: probability that all tokens so far were accepted and drafting continued
            before, mass, sum_of_tokens = (1.0, 0.0, 0.0)
            stop_after = 1.0 - predictor.false_accept_after if sent < window else 1.0
            for i in range(sent):
                wrong = before * (1.0 - rates[i]) * predictor.false_accept
                wrong *= predictor.false_accept_after ** (sent - 1 - i) * stop_after
                mass += wrong
                sum_of_tokens += wrong * (i + 1)
                before *= rates[i] * (1.0 - predictor.false_reject)
            if sent < window:
                before *= rates[sent] * predictor.false_reject + (1.0 - rates[sent]) * (
                    1.0 - predictor.false_accept
                )
            mass += before
            sum_of_tokens += before * (sent + 1)
            found[sent] = sum_of_tokens / mass if mass > 0.0 else 1.0
        return found
