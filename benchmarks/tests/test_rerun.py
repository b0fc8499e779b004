"""A cell of a comparison is solved again by the script for reviewers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import rerun  # type: ignore[import-not-found]  # benchmarks are no package

from specopt import InvalidInput, compare, generate
from specopt.comparison.store import Store
from specopt.solvers.serving_latency.baselines import StaticBatching

pytestmark = pytest.mark.nightly


def test_a_cell_is_solved_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a cell is found by how its key begins, solved with its options, and not kept;
    others are refused.
    """
    problem = generate("serving-latency/paper-1", tasks=5, seed=1)
    (record,) = compare(
        [StaticBatching(size=2)], [problem], folder=tmp_path, jobs=1, time_limit=600.0
    )
    assert rerun.main([str(tmp_path), record.key[:12]]) == 0
    old, new = json.loads(capsys.readouterr().out)
    assert old["options"] == new["options"] == {"size": 2}
    assert old["plan"] == new["plan"] and old["started"] <= new["started"]
    store = Store(tmp_path)
    assert len(store.records()) == 1
    with pytest.raises(
        InvalidInput, match="expected the key of one cell, got 'zz', with which none begins"
    ):
        rerun.record_of(store, "zz")
    for changes in ({"method": "gone"}, {"options": {"gone": 1}}):
        with pytest.raises(InvalidInput, match="serving-latency has no method"):
            rerun.solved_again(replace(record, **changes), store)


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    """Tests that objectives of any size are the same if they differ in the tenth digit, and not in
    the eighth.
    """
    (record,) = compare(
        ["greedy"], [generate("draft-allocation/uniform", seed=1)], folder=tmp_path, jobs=1
    )
    for size in (1e6, 1e-6):
        for other, same in ((1.0 + 2e-10, True), (1.0 + 2e-8, False)):
            pair = replace(record, objective=size), replace(record, objective=other * size)
            assert rerun.same_objective(*pair) is same
