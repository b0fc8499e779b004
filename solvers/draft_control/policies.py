"""Policies that cannot be expressed as a table over states: the paper's adaptive heuristic, and the
server model alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.draft_control.problem import DraftControlPlan, DraftLength, Resolution
from specopt.models.fields import Checked


@dataclass(frozen=True, kw_only=True)
class AdaptiveHeuristic(Checked):
    """One draft more when all were accepted, else as many as were accepted, at least one (paper 3,
    Sec. V-A).

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
    """The server generates one token per iteration, whatever draft lengths are allowed: the line
    "LLM" of Figure 4.
    """

    name = "llm-alone"


Policy = DraftControlPlan | AdaptiveHeuristic | ServerAlone
"""What can be played; a plan is a policy by table, however it was found."""

NAMED = {one.name: one for one in (AdaptiveHeuristic, ServerAlone)}
POLICIES = tuple(NAMED)
