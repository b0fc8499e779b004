"""Workloads for simulations of a verifier, with the speed classes and settings of paper 2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specopt.models.arguments import integer, number, positive, sequence
from specopt.models.pass_time import VerificationTime
from specopt.models.verification_batch.workload import DraftPredictor, VerificationWorkload

TABLE_12 = VerificationTime(
    seconds_per_new_token=3.314e-5,
    seconds_per_interaction=3.450e-8,
    seconds_per_cached_token=4.620e-6,
    overhead_seconds=1.486e-2,
)
"""Estimator from Table 12 of paper 2, which was fitted to Qwen3-32B on an A100."""

CLASS_SPEEDS = (2.0, 4.0, 6.0, 8.0)
"""Speeds that the classes in Sec. 5.1 of paper 2 require, in tokens per second."""


def mixed_classes(
    *,
    prompt_median_tokens: float = 150.0,
    acceptance_rate: float = 0.73,
    window: int = 4,
    class_speeds: Sequence[float] = CLASS_SPEEDS,
    class_shares: Sequence[float] | None = None,
    estimator: VerificationTime = TABLE_12,
    prefix_cache: bool = True,
    predictor: DraftPredictor | None = None,
) -> VerificationWorkload:
    """Return a workload in which devices of four speed classes share one verifier.

    By default, the classes require 2, 4, 6 and 8 tokens/s and have equal shares. Devices draft 50
    tokens/s in windows of 4 tokens. The following values are assumed, because paper 2 omits them:
    prompt lengths are lognormal with sigma 0.5, and response lengths are lognormal with median 100
    tokens and sigma 0.6. Messages take 10 ms plus an exponentially distributed time with mean 2 ms,
    the mean think time is 2 s, and memory is ample.

    Parameters
    ----------
    prompt_median_tokens
        Median of the lognormal prompt length.
    acceptance_rate
        Probability that a draft token is accepted, given that all its predecessors were accepted.
        The probability is the same at every position.
    window
        Number of draft tokens in a window.
    class_speeds
        Required speed of each class, in tokens per second.
    class_shares
        Fraction of devices in each class; None means equal fractions.
    estimator
        Estimator of a batch's duration.
    prefix_cache
        Whether the verifier keeps keys and values between the verifications of a response.
    predictor
        Predictor whose first predicted rejection stops drafting; None means that the whole window
        is drafted.
    """
    window = integer("window", window, 1, 1000)
    acceptance_rate = number("acceptance_rate", acceptance_rate, 0, 1)
    speeds = sequence("class_speeds", class_speeds)
    shares = (
        [1.0 / len(speeds)] * len(speeds)
        if class_shares is None
        else sequence("class_shares", class_shares)
    )
    return VerificationWorkload(
        class_speeds=speeds,
        class_shares=shares,
        estimator=estimator,
        acceptance_rates=np.full(window, acceptance_rate),
        prompt_median_tokens=prompt_median_tokens,
        prompt_sigma=0.5,
        response_median_tokens=100.0,
        response_sigma=0.6,
        draft_tokens_per_second=50.0,
        uplink_seconds=0.010,
        downlink_seconds=0.010,
        jitter_seconds=0.002,
        think_seconds=2.0,
        kv_bytes_per_token=262144.0,  # 64 layers, 8 heads of 128 for keys and values, 2 bytes
        prefix_cache=prefix_cache,
        guard_seconds=0.005,
        predictor=predictor,
    )


def one_class(
    *,
    speed: float = 6.0,
    prompt_median_tokens: float = 150.0,
    acceptance_rate: float = 0.73,
    window: int = 4,
    prefix_cache: bool = True,
) -> VerificationWorkload:
    """Return a workload like that of `mixed_classes`, except that all devices require the same
    speed.

    Parameters
    ----------
    speed
        Required speed in tokens per second.
    prompt_median_tokens
        Median of the lognormal prompt length, as in `mixed_classes`.
    acceptance_rate
        Acceptance rate at every position, as in `mixed_classes`.
    window
        Number of draft tokens in a window, as in `mixed_classes`.
    prefix_cache
        Whether the verifier keeps keys and values between verifications, as in `mixed_classes`.
    """
    return mixed_classes(
        prompt_median_tokens=prompt_median_tokens,
        acceptance_rate=acceptance_rate,
        window=window,
        class_speeds=(positive("speed", speed),),
        prefix_cache=prefix_cache,
    )


def predicted_rejections(
    *,
    false_accept: float = 0.2,
    false_reject: float = 0.05,
    false_accept_after: float = 0.3,
    prompt_median_tokens: float = 150.0,
    acceptance_rate: float = 0.73,
    window: int = 8,
) -> VerificationWorkload:
    """Return a workload like that of `mixed_classes`, except that devices stop drafting at a
    predicted rejection.

    Parameters
    ----------
    false_accept
        Probability that drafting continues at the first rejected token (Sec. 4.1).
    false_reject
        Probability that drafting stops at an accepted token.
    false_accept_after
        Probability that drafting continues after the first rejected token.
    prompt_median_tokens
        Median of the lognormal prompt length, as in `mixed_classes`.
    acceptance_rate
        Acceptance rate at every position, as in `mixed_classes`.
    window
        Number of draft tokens in a window, as in `mixed_classes`.
    """
    return mixed_classes(
        prompt_median_tokens=prompt_median_tokens,
        acceptance_rate=acceptance_rate,
        window=window,
        predictor=DraftPredictor(
            false_accept=false_accept,
            false_reject=false_reject,
            false_accept_after=false_accept_after,
        ),
    )
