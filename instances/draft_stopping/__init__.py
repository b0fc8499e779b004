"""Families of `draft-stopping` problems."""

from __future__ import annotations

from specopt.instances.draft_stopping.mixed import mixed
from specopt.instances.draft_stopping.paper_2 import paper_2
from specopt.instances.draft_stopping.random import random
from specopt.instances.family import Family

FAMILIES: tuple[Family, ...] = (
    Family("draft-stopping/mixed", mixed),
    Family("draft-stopping/paper-2", paper_2),
    Family("draft-stopping/random", random),
)
