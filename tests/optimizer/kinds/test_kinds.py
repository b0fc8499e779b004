"""What belongs to a kind of problem is declared in one place, and nothing else tells kinds
apart.
"""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specopt
from specopt.kinds import KINDS, kind_of
from specopt.kinds.kind import Kind
from specopt.kinds.view import View, view_of

ROOT = Path(__file__).parents[3]
NAMES = {kind.name for kind in KINDS}
CLASSES = {cls.__name__: kind.name for kind in KINDS for cls in (kind.problem, kind.plan)}
ALLOWED = {"optimizer/__init__.py", "optimizer/kinds/__init__.py"}
"""Files that may name several kinds: the package exports their classes, and `kinds` lists them."""

SOURCES = sorted(
    path
    for folder in ("optimizer", "models", "solvers", "instances")
    for path in (ROOT / folder).rglob("*.py")
    if str(path.relative_to(ROOT)) not in ALLOWED
)


def test_nothing_else_tells_kinds_apart() -> None:
    """Tests that no source has a kind's name as a value, or uses the problem and plan classes of
    several kinds.
    """
    wrong = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        lines = [
            line for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for line in node.body
        ]
        declared = [
            line.value
            for line in lines
            if isinstance(line, ast.Assign) and _name(line.targets[0]) == "kind"
        ]
        values = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and node not in declared
        ]
        wrong += [f"{path}: {node.value!r}" for node in values if node.value in NAMES]
        used = {CLASSES[_name(node)] for node in ast.walk(tree) if _name(node) in CLASSES}
        wrong += [f"{path}: {sorted(used)}"] if len(used) > 1 else []
    assert wrong == []


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def test_every_folder_of_kinds_is_listed() -> None:
    """Tests that each folder of a kind is in `KINDS`, under the name of its problem."""
    folders = {path.parent.name for path in (ROOT / "optimizer" / "kinds").glob("*/__init__.py")}
    assert folders == {kind.name.replace("-", "_") for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_declarations_fit_together(kind: Kind) -> None:
    """Tests that methods, families, view, and what sensitivity varies are of the kind that declares
    them.
    """
    assert kind_of(kind.name) is kind is kind_of(kind.problem)
    assert kind.methods and all(method.solves is kind.problem for method in kind.methods)
    assert kind.families and all(family.kind == kind.name for family in kind.families)
    assert isinstance(view_of(kind.name), View)
    fields = kind.problem.__dataclass_fields__
    assert all(one.field in fields for one in kind.perturbations)
    for one in (kind.problem, kind.plan):
        assert getattr(specopt, one.__name__, one) is one


@pytest.mark.parametrize("name", ["draft-allocation", "fair-goodput"])
def test_rates_near_one_rise_as_far_as_they_may(name: str) -> None:
    """Tests that sensitivity raises every uncertain acceptance rate, and near 1 by less than
    0.01.
    """
    kind = kind_of(name)
    assert kind.uncertainty is not None
    problem: Any = kind.families[0].generate(seed=1)
    rates = np.full(kind.uncertainty.shape(problem), 0.995)
    near = dataclasses.replace(problem, acceptance_rates=rates)
    (raised,) = (one.apply(near) for one in kind.perturbations if one.field == "acceptance_rates")
    assert raised.shape == rates.shape and (rates < raised).all() and (raised < 1.0).all()
