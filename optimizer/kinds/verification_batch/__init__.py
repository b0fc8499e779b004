"""Declaration of the kind `verification-batch` (paper 2), which decides which pending requests to
verify next.
"""

from __future__ import annotations

from specopt.instances.runtimes.fields import of_verification_batch
from specopt.instances.verification_batch import FAMILIES, WORKLOADS
from specopt.instances.verification_batch.from_deployment import verification_batch
from specopt.instances.verification_batch.from_trace import FROM_TRACE
from specopt.kinds.kind import FASTER, Kind, Simulator, added, faster, more
from specopt.models.verification_batch.problem import VerificationBatchProblem
from specopt.models.verification_batch.workload import VerificationWorkload
from specopt.solvers.verification_batch import METHODS
from specopt.solvers.verification_batch.milp import FORMULATION
from specopt.solvers.verification_batch.policies import POLICIES

KIND = Kind(
    problem=VerificationBatchProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    rows=lambda plan: (
        {"position": i, "request": request} for i, request in enumerate(plan.batch.tolist())
    ),
    perturbations=(
        added("memory_bytes", "+1 GB memory", 1e9),
        added("deadline_seconds", "+1 ms to every deadline", 1e-3),
        more(
            "estimator",
            "verification 1 % faster",
            lambda estimator: estimator.scaled(FASTER, FASTER),
        ),
        faster("guard_seconds", "guard time"),
    ),
    from_trace=FROM_TRACE,
    from_runtimes=of_verification_batch,
    from_deployment=verification_batch,
    simulator=Simulator(
        world=VerificationWorkload,
        module="specopt.solvers.verification_batch.simulate",
        policies=POLICIES,
        workloads=WORKLOADS,
    ),
)
