"""Families of `draft-control` problems."""

from __future__ import annotations

from specopt.instances.draft_control.alternating import alternating
from specopt.instances.draft_control.deterministic_cycle import deterministic_cycle
from specopt.instances.draft_control.near_tie import near_tie
from specopt.instances.draft_control.paper_3 import paper_3
from specopt.instances.draft_control.random import random
from specopt.instances.draft_control.slow_mixing import slow_mixing
from specopt.instances.family import Family

FAMILIES: tuple[Family, ...] = (
    Family("draft-control/paper-3", paper_3),
    Family("draft-control/random", random),
    Family("draft-control/alternating", alternating),
    Family("draft-control/near-tie", near_tie),
    Family("draft-control/deterministic-cycle", deterministic_cycle),
    Family("draft-control/slow-mixing", slow_mixing),
)
