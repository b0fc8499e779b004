"""Families (problem generators) for `placement`."""

from __future__ import annotations

from specopt.instances.family import families
from specopt.instances.placement.edge_cloud import edge_cloud
from specopt.instances.placement.many_classes import capacity, many_classes
from specopt.instances.placement.one_class import one_class
from specopt.models.placement.problem import PlacementProblem

FAMILIES = families(PlacementProblem, capacity, edge_cloud, many_classes, one_class)
