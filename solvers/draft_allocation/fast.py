"""One round's allocation as a bare compiled call, for a controller that makes it every round.

>>> import numpy as np
>>> from specopt.solvers.draft_allocation import fast
>>> weights, rates = np.array([1.0, 0.5, 2.0]), np.array([0.9, 0.6, 0.7])
>>> out = np.empty(3, np.int64)
>>> fast.allocate(weights, rates, 8, None, out)
8
>>> out
array([5, 0, 3])

The arrays belong to the caller and are prepared once: C-contiguous, float64 and int64, and not
checked again. With N = 8 and C = 20 a call takes about a microsecond.
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
    """Write the optimal drafts of each client (paper 5, Eq. 5) to `out` and return their sum.

    Parameters
    ----------
    weights, acceptance_rates
        Per client: w_i >= 0 and a_i in [0, 1), finite. With weights that are the gradient of a
        utility this is one step of gradient scheduling.
    budget
        C >= 0, the drafted tokens that the server verifies in one round.
    caps
        Maximum number of draft tokens of each client; None if only the budget limits them.
    out
        Array that receives the drafts of each client. Tokens that add nothing stay unused; ties go
        to the lower index.

    Raises
    ------
    ValueError
        If the arrays differ in length.
    TypeError
        If they are not contiguous, or of other types.
    """
    return _kernel()(weights, acceptance_rates, budget, _NO_CAPS if caps is None else caps, out)


def warm_up() -> None:
    """Load the kernel, which compiles it on a fresh machine, so that the first call of `allocate`
    need not.
    """
    _kernel()


@cache
def _kernel() -> Callable[[Floats, Floats, int, Ints, Ints], int]:
    from specopt.solvers.draft_allocation.kernels.water_level import allocate as kernel

    found: Callable[[Floats, Floats, int, Ints, Ints], int] = kernel.prepare()
    return found
