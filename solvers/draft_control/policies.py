"""Policies that no table over states can express: the paper's adaptive heuristic, and the server model by itself."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem, DraftLength, Resolution
from specopt.models.errors import InvalidInput
from specopt.models.fields import Checked, describe


@dataclass(frozen=True, kw_only=True)
class AdaptiveHeuristic(Checked):
    """One draft more when all were accepted, else as many as were accepted, at least one (paper 3, Sec. V-A).

    The length stays within the problem's range. The device looks at nothing but its last iteration.

    Parameters
    ----------
    first_length
        L^1, the length of the first draft.
    resolution
        One of the problem's resolutions, or None for the first of them.
    """

    name = "adaptive-heuristic"
    first_length: DraftLength = 4
    resolution: Resolution | None = None


@dataclass(frozen=True)
class ServerAlone:
    """The server generates one token per iteration, whatever draft lengths are allowed: the line "LLM" of Figure 4."""

    name = "llm-alone"


Policy = DraftControlPlan | AdaptiveHeuristic | ServerAlone
"""What can be played; a plan is a policy by table, however it was found."""

POLICIES = (AdaptiveHeuristic.name, ServerAlone.name)


def as_policy(problem: DraftControlProblem, policy: Policy | str) -> Policy:
    """Return the policy of a name, or the given one if it fits the problem.

    Raises
    ------
    InvalidInput
        If it is neither, or a plan that violates the problem, or a resolution that the problem does not have.
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            known = " or ".join(map(repr, POLICIES))
            raise InvalidInput(f"policy: expected a plan, {known}, got {policy!r}")
        policy = AdaptiveHeuristic() if policy == AdaptiveHeuristic.name else ServerAlone()
    if isinstance(policy, DraftControlPlan):
        violations = problem.violations(policy)
        if violations:
            raise InvalidInput(f"policy: expected a feasible plan, but {violations[0]}")
    elif isinstance(policy, AdaptiveHeuristic):
        allowed = problem.resolutions.tolist()
        if policy.resolution is not None and policy.resolution not in allowed:
            raise InvalidInput(
                f"policy.resolution: expected one of {', '.join(map(str, allowed))}, got {policy.resolution}"
            )
    elif not isinstance(policy, ServerAlone):
        raise InvalidInput(f"policy: expected a plan or a policy of draft control, got {describe(policy)}")
    return policy
