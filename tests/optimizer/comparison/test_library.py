"""Comparisons on the instance library: its instances by name, its best known values in the
summaries.
"""

from __future__ import annotations

import pytest

from specopt.api.library import best_known, load_saved, saved
from specopt.comparison.compare import compare
from specopt.comparison.instances import instances_of
from specopt.comparison.table import Comparison
from specopt.kinds import KINDS


def test_sources() -> None:
    """Tests that a kind gives its instances, by their names, and that library gives all of every
    kind.
    """
    assert list(instances_of(["fair-goodput"])) == saved("fair-goodput")
    assert list(instances_of(["library"])) == [name for kind in KINDS for name in saved(kind.name)]


@pytest.mark.usefixtures("in_this_process")
def test_gaps_are_to_the_best_known_bound() -> None:
    """Tests that a heuristic alone is measured against the library's optimum, and does not win with
    a worse plan.
    """
    name = "serving-latency/heavy-prefill/K8"
    comparison = compare(["algorithm-1"], {name: load_saved(name)}, jobs=1)
    (record,) = comparison
    best = best_known(name)
    assert record.objective is not None and best.bound is not None
    assert comparison.best(record) == pytest.approx((best.objective, best.bound))
    assert comparison.gap(record) == pytest.approx(
        (record.objective - best.bound) / record.objective
    )
    assert not comparison.wins(record) and not comparison.proven(record)
    alone = Comparison(comparison.records, known={})
    assert alone.wins(record) and alone.best(record)[0] == record.objective
