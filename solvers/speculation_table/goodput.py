"""Goodput of a batch by speculation length: accepted tokens per second of drafting and verifying.

A step of b requests with K drafts each yields b E[N_K] tokens and lasts K T_draft(b, 1) + T_verify(b, 1 + K); with
K = 0 the draft model rests.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats
from specopt.models.pass_time import PassTime, Which


def goodput(
    tokens: Floats,
    draft: PassTime,
    verify: PassTime,
    most_requests: int,
    *,
    step_overhead_seconds: float = 0.0,
    which_draft: Which = "fitted",
    which_verify: Which = "fitted",
) -> Floats:
    """Return tokens per second, shape (B, K + 1), for 1..B requests and 0..K drafts each.

    Parameters
    ----------
    tokens
        Mean tokens of a request's step, shape (K + 1,).
    draft, verify
        Times of the passes.
    most_requests
        B.
    step_overhead_seconds
        Of every step, whatever the drafts: scheduling, sampling.
    which_draft, which_verify
        Whether the fitted runtimes count, or one of their limits.
    """
    batch = np.arange(1.0, most_requests + 1.0)[:, None]
    drafts = np.arange(float(len(tokens)))[None]
    seconds = (
        step_overhead_seconds
        + drafts * draft.seconds(batch, np.ones((1, 1)), which_draft)
        + verify.seconds(batch, 1.0 + drafts, which_verify)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(batch * tokens / seconds, dtype=np.float64)
