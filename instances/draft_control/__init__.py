"""Families (problem generators) for `draft-control`."""

from __future__ import annotations

from specopt.instances.draft_control.hard import (
    alternating,
    deterministic_cycle,
    near_tie,
    slow_mixing,
)
from specopt.instances.draft_control.paper_3 import paper_3
from specopt.instances.draft_control.random import random
from specopt.instances.family import families
from specopt.models.draft_control.problem import DraftControlProblem

FAMILIES = families(
    DraftControlProblem, paper_3, random, alternating, near_tie, deterministic_cycle, slow_mixing
)
