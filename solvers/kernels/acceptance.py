"""The expected number of tokens per round, for use in all kernels."""

import math

from specopt.solvers.kernels.kernel import helper


@helper
def expected_tokens(a, L, n):
    """Return mu(n), the expected number of tokens in a round with n draft tokens and acceptance
    rate a, where L = log a.

    The result is also accurate if a is close to 1.
    """
    p = math.exp((n + 1) * L)
    return (1.0 - p if p < 0.5 else -math.expm1((n + 1) * L)) / (1.0 - a)
