"""A fast interface to the allocation of draft tokens, for controllers that allocate in every round.
Each round takes a single compiled call.

>>> import numpy as np
>>> from specopt.solvers.draft_allocation import fast
>>> weights, rates = np.array([1.0, 0.5, 2.0]), np.array([0.9, 0.6, 0.7])
>>> out = np.empty(3, np.int64)
>>> fast.allocate(weights, rates, 8, None, out)
8
>>> out
array([5, 0, 3])

The caller owns the arrays and can reuse them in every round. The arrays must be C-contiguous and
have type float64 or int64. Their values are not checked. With 8 clients and a budget of 20 tokens,
a call takes about a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from specopt.models.fields import Floats, Ints

_NO_CAPS = np.empty(0, np.int64)


def allocate(
    weights: Floats, acceptance_rates: Floats, budget: int, caps: Ints | None, out: Ints
) -> int:
    """Compute the optimal number of draft tokens for each client (paper 5, Eq. 5), and write it to
    `out`.

    Return the total number of allocated tokens.

    Parameters
    ----------
    weights, acceptance_rates
        Finite weight w_i >= 0 and acceptance rate a_i in [0, 1) of each client. If the weights
        are the gradient of a utility, the call is one step of gradient scheduling.
    budget
        Maximum number C >= 0 of draft tokens that the server verifies in one round.
    caps
        Maximum number of draft tokens for each client, or None if only the budget limits them.
    out
        Array that receives the number of draft tokens for each client. Tokens that add no value are
        not allocated, and ties go to the client with the lower index.

    Raises
    ------
    ValueError
        If the arrays differ in length.
    TypeError
        If an array is not contiguous or has the wrong type.
    """
    return _kernel()(weights, acceptance_rates, budget, _NO_CAPS if caps is None else caps, out)


def warm_up() -> None:
    """Load the compiled kernel, or compile it if it is not cached. Afterwards, even the first call
    of `allocate` is fast.
    """
    _kernel()


@cache
def _kernel() -> Callable[[Floats, Floats, int, Ints, Ints], int]:
    from specopt.solvers.draft_allocation.kernels.water_level import allocate as kernel

    found: Callable[[Floats, Floats, int, Ints, Ints], int] = kernel.prepare()
    return found
