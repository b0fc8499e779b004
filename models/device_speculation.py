"""Speculative drafting on a device while the cloud verifies the previous draft (paper 4).

While the cloud verifies a draft, the device continues drafting from the top-k candidates for the
token that the cloud may correct. Eq. 6 determines how many drafting steps the device can complete
in this time.

In Eq. 6, mu_i is the number of draft tokens. In Eq. 1, mu^t is the number of tokens in a batch.
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
    """Return the number lambda of drafting steps that a device can complete during verification.

    The number follows Eq. 6. Requests are assumed not to queue in the cloud.

    Parameters
    ----------
    draft_tokens
        Number mu_i of tokens in the draft that is being verified.
    bytes_per_token
        Number A of bytes transferred per token in each direction.
    uplink_bytes_per_second
        Uplink rate beta_up, in bytes per second.
    downlink_bytes_per_second
        Downlink rate beta_down, in bytes per second.
    cloud_seconds
        Delay g(mu) in the cloud, in seconds.
    draft_seconds
        Duration gamma of a drafting step, in seconds.

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
