"""Families of `fair-goodput` problems, and of workloads for its policies."""

from __future__ import annotations

from specopt.instances.fair_goodput import workload
from specopt.instances.fair_goodput.extreme_fairness import extreme_fairness
from specopt.instances.fair_goodput.minimum_rates import minimum_rates
from specopt.instances.fair_goodput.paper_5 import paper_5
from specopt.instances.fair_goodput.per_second import per_second
from specopt.instances.family import Family

FAMILIES: tuple[Family, ...] = (
    Family("fair-goodput/paper-5", paper_5),
    Family("fair-goodput/per-second", per_second),
    Family("fair-goodput/minimum-rates", minimum_rates),
    Family("fair-goodput/extreme-fairness", extreme_fairness),
)

WORKLOADS: tuple[Family, ...] = (
    Family("fair-goodput/fixed", workload.fixed),
    Family("fair-goodput/random", workload.random),
    Family("fair-goodput/drifting", workload.drifting),
    Family("fair-goodput/switching", workload.switching),
)
