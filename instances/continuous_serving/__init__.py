"""Families (problem generators) for `continuous-serving`."""

from __future__ import annotations

from specopt.instances.continuous_serving.arrivals import arrivals
from specopt.instances.continuous_serving.paper_1 import paper_1
from specopt.instances.family import families
from specopt.models.continuous_serving.problem import ContinuousServingProblem

FAMILIES = families(ContinuousServingProblem, arrivals, paper_1)
