"""Families (problem generators) for `draft-allocation`."""

from __future__ import annotations

from specopt.instances.draft_allocation.hard import capped, one_dominates, ties
from specopt.instances.draft_allocation.paper_5 import paper_5
from specopt.instances.draft_allocation.uniform import uniform
from specopt.instances.family import families
from specopt.models.draft_allocation.problem import DraftAllocationProblem

FAMILIES = families(DraftAllocationProblem, paper_5, uniform, ties, one_dominates, capped)
