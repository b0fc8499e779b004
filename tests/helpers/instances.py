"""The small instances of every kind, by its name and theirs."""

from __future__ import annotations

from importlib import import_module

from specopt import Problem
from specopt.kinds import KINDS


def small_instances(kind: str) -> dict[str, Problem]:
    """Return the problems of `small_instances` by name."""
    module = import_module(f"small_instances.{kind.replace('-', '_')}")
    found: dict[str, Problem] = module.INSTANCES
    return found


INSTANCES = {kind.name: small_instances(kind.name) for kind in KINDS}
