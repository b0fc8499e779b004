"""Families that generate `fair-goodput` problems, or workloads for their policies."""

from __future__ import annotations

from specopt.instances.fair_goodput import workload
from specopt.instances.fair_goodput.hard import extreme_fairness, minimum_rates, per_second
from specopt.instances.fair_goodput.paper_5 import paper_5
from specopt.instances.family import families
from specopt.models.fair_goodput.problem import FairGoodputProblem

FAMILIES = families(FairGoodputProblem, paper_5, per_second, minimum_rates, extreme_fairness)

WORKLOADS = families(
    FairGoodputProblem, workload.fixed, workload.random, workload.drifting, workload.switching
)
