"""Families (problem generators) for `draft-stopping`."""

from __future__ import annotations

from specopt.instances.draft_stopping.mixed import mixed
from specopt.instances.draft_stopping.paper_2 import paper_2
from specopt.instances.draft_stopping.random import random
from specopt.instances.family import families
from specopt.models.draft_stopping.problem import DraftStoppingProblem

FAMILIES = families(DraftStoppingProblem, mixed, paper_2, random)
