"""Families of `draft-allocation` problems."""

from __future__ import annotations

from specopt.instances.draft_allocation.capped import capped
from specopt.instances.draft_allocation.one_dominates import one_dominates
from specopt.instances.draft_allocation.paper_5 import paper_5
from specopt.instances.draft_allocation.ties import ties
from specopt.instances.draft_allocation.uniform import uniform
from specopt.instances.family import Family

FAMILIES: tuple[Family, ...] = (
    Family("draft-allocation/paper-5", paper_5),
    Family("draft-allocation/uniform", uniform),
    Family("draft-allocation/ties", ties),
    Family("draft-allocation/one-dominates", one_dominates),
    Family("draft-allocation/capped", capped),
)
