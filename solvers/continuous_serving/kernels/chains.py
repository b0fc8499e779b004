"""Chains of runs of one step of serving (paper 1, Eq. 20)."""

from specopt.solvers.kernels.kernel import helper
from specopt.solvers.serving_latency.kernels.stages import DRAFT, INFINITY, VERIFY
from specopt.solvers.serving_latency.kernels.step import served


@helper
def first_verified(overlap, most, patience, times, G, drafted, done, before):
    """Cut blocks 0..G-1, in their order, into at most `most` runs so that the last one is verified
    first.

    Of every number m of runs and every end e the chain is kept that is verified first; it begins
    when the stages are free, at drafted[0, 0] and done[0, 0]. The array times[e, j] has the stage
    times of the run of blocks j..e-1, infinite where it does not fit; then no longer run does. The
    search ends once `patience` more runs were no better. Returns the best number of runs, 0 if
    nothing fits; run m of m ends where before[m + 1, end of run m + 1] says.
    """
    for m in range(most + 1):
        for e in range(G + 1):
            if m + e > 0:
                done[m, e] = INFINITY
    best = 0
    for m in range(1, most + 1):
        if best > 0 and m > best + patience:
            break
        for e in range(m, G + 1):
            for j in range(
                e - 1, m - 2, -1
            ):  # short runs first: the first that does not fit ends it
                if times[e, j, VERIFY] == INFINITY:
                    break
                if done[m - 1, j] == INFINITY:
                    continue
                ready, end = served(
                    overlap,
                    drafted[m - 1, j],
                    done[m - 1, j],
                    times[e, j, DRAFT],
                    times[e, j, VERIFY],
                )
                if end < done[m, e]:
                    drafted[m, e], done[m, e], before[m, e] = ready, end, j
        if done[m, G] < done[best, G]:
            best = m
    return best
