"""Families of `toy` problems."""

from __future__ import annotations

from specopt.instances.family import Family
from specopt.instances.toy.plain import plain

FAMILIES: tuple[Family, ...] = (Family("toy/plain", plain),)
