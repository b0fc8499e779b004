"""One step of serving: batches that pass the two stages in order (paper 1, Eq. 20)."""

from specopt.solvers.kernels.kernel import inlined


@inlined
def served(overlap, drafted, done, draft, verify):
    """Return the times at which the stages are free after one more batch.

    The batch occupies the stages for the durations `draft` and `verify`.
    """
    drafted = (drafted if overlap else done) + draft
    return drafted, max(drafted, done) + verify
