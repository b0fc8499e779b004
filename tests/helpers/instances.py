"""The small problems of a kind."""

from __future__ import annotations

from importlib import import_module

from specopt import Problem


def small_instances(kind: str) -> dict[str, Problem]:
    """Return the problems of `small_instances` by name."""
    module = import_module(f"small_instances.{kind.replace('-', '_')}")
    found: dict[str, Problem] = module.INSTANCES
    return found
