"""The recursion for one decoding step, in which batches pass through the draft stage and the verify
stage in order (paper 1, Eq. 20).
"""

from specopt.solvers.kernels.kernel import inlined


@inlined
def served(overlap, drafted, done, draft, verify):
    """Return the times at which the draft stage and the verify stage become free after one more
    batch.

    Before the batch, they become free at `drafted` and `done`. The batch occupies them for the
    durations `draft` and `verify`.
    """
    drafted = (drafted if overlap else done) + draft
    return drafted, max(drafted, done) + verify
