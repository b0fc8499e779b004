"""Declaration of the kind `placement`, which decides where and with which drafter each client's
tokens are drafted, and how many hardware units are needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from specopt.instances.placement import FAMILIES
from specopt.instances.placement.from_deployment import placement
from specopt.kinds.kind import Kind, Row, Simulator, added, more, of_each
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.placement import METHODS
from specopt.solvers.placement.milp import FORMULATION


def _rows(plan: PlacementPlan) -> Iterator[Row]:
    for number, group in enumerate(plan.groups):
        for one in group.clients:
            drafts = group.beside or one
            drafter = drafts.drafter
            if one.draft_group is not None:
                drafter = plan.draft_groups[one.draft_group].drafter
            yield {
                "group": number,
                "verifier": group.verifier,
                "units": group.units,
                "class": one.class_,
                "per_unit": one.per_unit,
                "place": one.place,
                "drafter": drafter,
                "draft_tokens": drafts.draft_tokens or 0,
                "overlap": one.overlap,
            }


KIND = Kind(
    problem=PlacementProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    rows=_rows,
    perturbations=(
        added("max_draft_tokens", "+1 maximum draft length", 1),
        more("verifiers", "+1 unit of every verifier", of_each("units", lambda units: units + 1)),
        more(
            "verifiers",
            "+1 GB memory of every unit",
            of_each("memory_bytes", lambda size: size + 1e9),
        ),
        more(
            "classes",
            "minimum rates 1 % lower",
            of_each("min_tokens_per_second", lambda rate: 0.99 * rate),
        ),
    ),
    from_deployment=placement,
    advice="specopt.api.placing",
    simulator=Simulator(world=PlacementProblem, module="specopt.solvers.placement.simulate"),
)
