"""One step of serving: runs that pass the two stages one after the other (paper 1, Eq. 20)."""

from specopt.solvers.kernels.kernel import inlined


@inlined
def served(overlap, drafted, done, draft, verify):
    """Return when each stage is free again after one more run, which takes them for `draft` and
    `verify` seconds.
    """
    drafted = (drafted if overlap else done) + draft
    return drafted, max(drafted, done) + verify
