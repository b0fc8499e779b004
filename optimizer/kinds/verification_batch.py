"""`verification-batch`: which pending requests the verifier takes next (paper 2)."""

from __future__ import annotations

from collections.abc import Iterator

from specopt.instances.library.verification_batch import RECIPES
from specopt.instances.traces.verification_batch import FROM_TRACE
from specopt.instances.verification_batch import FAMILIES
from specopt.kinds.kind import Kind, Row
from specopt.models.verification_batch import VerificationBatchPlan, VerificationBatchProblem
from specopt.solvers.verification_batch import METHODS


def _rows(plan: VerificationBatchPlan) -> Iterator[Row]:
    return ({"position": i, "request": int(request)} for i, request in enumerate(plan.batch))


KIND = Kind(
    problem=VerificationBatchProblem,
    methods=METHODS,
    families=FAMILIES,
    recipes=RECIPES,
    rows=_rows,
    from_trace=FROM_TRACE,
)
