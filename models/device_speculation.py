"""Speculative drafting on a device while the cloud verifies the previous draft (paper 4).

While the cloud verifies, the device continues drafting from the top-k candidates for the token that
may be corrected. Eq. 6 determines the number of drafting steps that the device can complete.

In Eq. 6, mu_i is the number of draft tokens; in Eq. 1, mu^t is the number of tokens in a batch.
"""

from __future__ import annotations

import math

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


def parallel_steps(
    draft_tokens: int,
    *,
    bytes_per_token: float,
    uplink_bytes_per_second: float,
    downlink_bytes_per_second: float,
    cloud_seconds: float,
    draft_seconds: float,
) -> int:
    """Return lambda of Eq. 6: the number of drafting steps that a device can complete while the
    cloud verifies. Requests are assumed not to wait in the cloud.

    Parameters
    ----------
    draft_tokens
        Number mu_i of tokens in the draft that is being verified.
    bytes_per_token
        Number A of bytes that are transferred per token.
    uplink_bytes_per_second
        Uplink rate beta_up.
    downlink_bytes_per_second
        Downlink rate beta_down.
    cloud_seconds
        Cloud delay g(mu).
    draft_seconds
        Drafting time gamma per step.

    Examples
    --------
    >>> parallel_steps(
    ...     3, bytes_per_token=8192.0, uplink_bytes_per_second=7.5e6,
    ...     downlink_bytes_per_second=12.5e6,
    ...     cloud_seconds=0.027, draft_seconds=0.008,
    ... )
    4
    """
    if not draft_seconds > 0.0:
        raise InvalidInput(f"draft_seconds: expected a number > 0, got {describe(draft_seconds)}")
    link = draft_tokens * bytes_per_token
    spent = link / uplink_bytes_per_second + cloud_seconds + link / downlink_bytes_per_second
    return math.floor(spent / draft_seconds)
