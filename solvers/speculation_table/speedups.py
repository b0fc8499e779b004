"""Speed-up over no speculation by batch size and speculation length, with its limits.

A step of b requests with K drafts each yields b E[N_K] tokens; without speculation a step yields b. Every pass may lie
anywhere within its limits whatever the others do: forms miss each pass by another amount.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance_lengths import Acceptance
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.solvers.speculation_table.runtimes import Runtimes


@dataclass(frozen=True, eq=False)
class Speedups:
    """Goodput relative to that without speculation, shape (B, K + 1): expected over the contexts, and its limits."""

    fitted: Floats
    low: Floats
    high: Floats


def speedups(runtimes: Runtimes, acceptance: Acceptance, requests: int, drafts: int) -> Speedups:
    """Return the speed-ups of 1..B requests with 0..K drafts each.

    Raises
    ------
    InvalidInput
        If a step takes no time.
    """
    tokens = {which: acceptance.expected_tokens(drafts, which) for which in ("rates", "lower", "upper")}
    alone, speculating = runtimes.seconds(requests, drafts)
    if not (speculating > 0.0).all():
        raise InvalidInput("runtime: expected passes that take some time, got a step of 0 seconds")
    fitted = tokens["rates"] * alone.mean(axis=0) / speculating.mean(axis=0)
    alone_low, fast = runtimes.seconds(requests, drafts, "lower")
    alone_high, slow = runtimes.seconds(requests, drafts, "upper")
    low = (tokens["lower"] * alone_low / slow).min(axis=0)
    # where a limit is no time at all, drafts cost nothing at best
    high = np.divide(tokens["upper"] * alone_high, fast, out=tokens["upper"] * np.ones_like(fast), where=fast > 0.0)
    high = high.max(axis=0)
    least, most = runtimes.zero_draft_cost
    low[:, 0], high[:, 0] = 1.0 - most, 1.0 - least  # the same pass in either case
    return Speedups(fitted, np.minimum(low, fitted), np.maximum(high, fitted))
