"""Families of `draft-control` problems."""

from __future__ import annotations

from specopt.instances.draft_control.alternating import alternating
from specopt.instances.draft_control.deterministic_cycle import deterministic_cycle
from specopt.instances.draft_control.near_tie import near_tie
from specopt.instances.draft_control.paper_3 import paper_3
from specopt.instances.draft_control.random import random
from specopt.instances.draft_control.slow_mixing import slow_mixing
from specopt.instances.family import families
from specopt.models.draft_control.problem import DraftControlProblem

FAMILIES = families(
    DraftControlProblem, paper_3, random, alternating, near_tie, deterministic_cycle, slow_mixing
)
