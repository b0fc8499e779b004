"""Policies that cannot be expressed as a table over states: the adaptive heuristic of paper 3, and
generation by the server model alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.draft_control.problem import DraftControlPlan, DraftLength, Resolution
from specopt.models.fields import Checked


@dataclass(frozen=True, kw_only=True)
class AdaptiveHeuristic(Checked):
    """The adaptive heuristic of paper 3, Sec. V-A.

    If all drafts of an iteration were accepted, the next iteration drafts one more token.
    Otherwise, the next iteration drafts as many tokens as were accepted, but at least one. The
    length stays within the problem's range. The device uses only the outcome of its last iteration.

    Parameters
    ----------
    first_length
        Length of the first draft, L^1.
    resolution
        Resolution used for all drafts, or None for the first resolution of the problem.
    """

    name = "adaptive-heuristic"
    first_length: DraftLength = 4
    resolution: Resolution | None = None


@dataclass(frozen=True)
class ServerAlone:
    """The server generates one token per iteration, regardless of the allowed draft lengths.

    This policy corresponds to the curve "LLM" in Figure 4 of paper 3.
    """

    name = "llm-alone"


Policy = DraftControlPlan | AdaptiveHeuristic | ServerAlone
"""Any policy that can be simulated.

A plan is a policy in the form of a table over states.
"""

NAMED = {one.name: one for one in (AdaptiveHeuristic, ServerAlone)}
POLICIES = tuple(NAMED)
