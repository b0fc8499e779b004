"""Families of `placement` problems."""

from __future__ import annotations

from specopt.instances.family import Family
from specopt.instances.placement.capacity import capacity
from specopt.instances.placement.edge_cloud import edge_cloud
from specopt.instances.placement.many_classes import many_classes
from specopt.instances.placement.one_class import one_class

FAMILIES: tuple[Family, ...] = (
    Family("placement/capacity", capacity),
    Family("placement/edge-cloud", edge_cloud),
    Family("placement/many-classes", many_classes),
    Family("placement/one-class", one_class),
)
