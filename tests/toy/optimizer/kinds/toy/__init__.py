"""`toy`: a seventh kind of problem, for a test."""

from __future__ import annotations

from specopt.instances.toy import FAMILIES
from specopt.kinds.kind import Kind, Perturbation
from specopt.models.toy.problem import ToyProblem
from specopt.solvers.toy import METHODS

KIND = Kind(
    problem=ToyProblem,
    methods=METHODS,
    families=FAMILIES,
    rows=lambda plan: ({"thing": i} for i in range(plan.count)),
    view="specopt.kinds.toy.view",
    strategies="specopt.kinds.toy.strategies",
    perturbations=(Perturbation("limit", "+1 thing", lambda problem: problem.limit + 1),),
)
