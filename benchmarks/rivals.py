"""The baselines of speed measurements: the algorithms as printed, plainly compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from specopt.models.fields import Floats
from specopt.solvers.serving_latency.prepare import Prepared


@njit(cache=True)
def _printed_algorithm_1(inputs, width, draft, verify):  # type: ignore[no-untyped-def]  # Numba infers the types
    """Paper 1, Algorithm 1 with its misprints corrected: every Y[i, n, s] is stored, every sum runs
    over n.

    draft and verify: shape (K + 1, 3, N): per prefix i and step n, seconds of a batch that ends at
    i as constant + size * slope (row 0 and 1), so that no time is spent on anything but the
    recursion itself.
    """
    K = len(inputs)
    N = draft.shape[2]
    Y = np.zeros((K + 1, N, 2))
    best = np.full(K + 1, np.inf)
    best[0] = 0.0
    S = np.zeros(K + 1, np.int64)
    for i in range(1, K + 1):
        for j in range(1, i + 1):
            b = i - j + 1
            if b > width[i] or best[j - 1] == np.inf:
                continue
            total = 0.0
            for n in range(N):
                d = draft[i, 0, n] + b * draft[i, 1, n]
                v = verify[i, 0, n] + b * verify[i, 1, n]
                total += max(Y[j - 1, n, 0] + d, Y[j - 1, n, 1]) + v
            if total <= best[i] * (1.0 + 1e-12):
                best[i] = total
                S[i] = j
        j = S[i]
        if j > 0:
            b = i - j + 1
            for n in range(N):
                Y[i, n, 0] = Y[j - 1, n, 0] + draft[i, 0, n] + b * draft[i, 1, n]
                Y[i, n, 1] = max(Y[i, n, 0], Y[j - 1, n, 1]) + verify[i, 0, n] + b * verify[i, 1, n]
    return best[K], S


def stage_lines(prepared: Prepared, length: int) -> tuple[Floats, Floats]:
    """Return draft and verify seconds of batches by end and step as constant + size * slope
    (one-piece runtimes).
    """
    steps = prepared.batch_steps(prepared.outputs, length)
    tokens = prepared.tokens_per_step(length)
    n = np.arange(1, steps + 1)
    draft, verify = np.zeros((2, prepared.tasks + 1, 2, steps))
    (c1d, c2d, _), (c1v, c2v, _) = prepared.pieces[0][0], prepared.pieces[1][0]
    (a, p, _), (av, pv, _) = prepared.models
    padded = prepared.inputs[:, None]
    work = sum(a + p * (padded + (n - 1) * tokens + i - 1) for i in range(1, length + 1))
    work[:, 0] += a * (prepared.inputs - 1) + p * (
        prepared.inputs**2 - prepared.inputs
    )  # the prefill pass
    draft[1:, 0], draft[1:, 1] = length * c2d, c1d * work
    total = padded + (n - 1) * tokens + length
    new = np.where(n == 1, padded + length, 1.0 + length)
    verify[1:, 0], verify[1:, 1] = c2v, c1v * (av * new + pv * new * total)
    return draft, verify


def printed_algorithm_1(
    prepared: Prepared, width: object, lines: tuple[Floats, Floats]
) -> tuple[float, object]:
    """Return T_inf and the boundaries of the printed algorithm for stage times prepared outside the
    clock.
    """
    seconds, boundary = _printed_algorithm_1(prepared.inputs, width, *lines)
    return float(seconds), boundary
