"""The small instances of every kind, by its name and theirs."""

from __future__ import annotations

from importlib import import_module

from specopt import Problem
from specopt.kinds import KINDS

INSTANCES: dict[str, dict[str, Problem]] = {
    kind.name: import_module(f"small_instances.{kind.name.replace('-', '_')}").INSTANCES
    for kind in KINDS
}
