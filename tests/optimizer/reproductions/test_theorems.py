"""The sheet of theorems: every check comes out as the ledger says."""

from __future__ import annotations

from fractions import Fraction

import pytest

from specopt.reproductions import theorems
from specopt.reproductions.theorems import CHECKS, checked, fluid_relation

SHEET = theorems.theorems()


def test_every_theorem_has_a_check() -> None:
    """Tests that exactly what the ledger calls proved or refuted is checked, paper 5 first."""
    assert {(name, said.id) for name, said in SHEET} == set(CHECKS)
    assert SHEET[0][0] == "paper-5"


@pytest.mark.parametrize(("name", "item"), CHECKS, ids="/".join)
def test_theorem(name: str, item: str) -> None:
    """Tests that a proved statement holds on all instances, and that a refuted one has a counterexample."""
    said = next(said for paper, said in SHEET if (paper, said.id) == (name, item))
    found = checked(name, said)
    assert (found.counterexample != "") == (said.status == "refuted"), found.verdict
    assert found.instances > 0 or found.counterexample
    assert found.assumptions


def test_a_failing_instance_is_a_counterexample() -> None:
    """Tests that a check says on which instance a statement fails."""
    found = theorems._held("none", 10, lambda random: random.uniform() < 0.6)
    assert found.verdict.startswith("refuted: instance ")


def test_fluid_relation_by_hand() -> None:
    """Tests that both sides of Lemma 1's relation are those worked out by hand."""
    half = Fraction(1, 2)
    assert fluid_relation([half, half], [1, 0]) == (Fraction(5, 2), Fraction(5, 2))
    assert fluid_relation([Fraction(0), half], [1, 1]) == (Fraction(5, 2), Fraction(3))
