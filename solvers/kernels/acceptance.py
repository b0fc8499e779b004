"""What a round of drafts yields, for every kernel that asks."""

import math

from specopt.solvers.kernels.kernel import helper


@helper
def expected_tokens(a, L, n):
    """Return mu(n), the mean tokens of a round of n drafts, where L = log a; no digits are lost for
    a near 1.
    """
    p = math.exp((n + 1) * L)
    return (1.0 - p if p < 0.5 else -math.expm1((n + 1) * L)) / (1.0 - a)
