"""Results of an engine: sweeps, predictions and regrets, from throughput that is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specopt.models.errors import InvalidInput
from testbed.engine.loads import MIXED, REQUESTS, all_loads
from testbed.engine.results import FORMAT, LENGTHS, predictions, read_runs, regrets, seen, sweep_of
from testbed.prompts import KINDS


def run(length: int | None, factor: float = 1.0) -> dict[str, Any]:
    """Return results of an engine whose step takes 20 ms and 1 ms per token in it, 70 % of drafts being accepted."""
    loads: list[dict[str, Any]] = []
    for prompts in ("tuning", "unseen"):
        for concurrency in REQUESTS:
            drafts = length or 0
            made = sum(0.7**place for place in range(drafts + 1))
            step = (0.02 + 0.001 * concurrency * (1 + drafts)) * (1.02 if length is not None else 1.0)
            tokens = round(1e6 * concurrency * made * factor)
            loads.append(
                {
                    "prompts": prompts,
                    "workload": MIXED,
                    "concurrency": concurrency,
                    "tokens": tokens,
                    "processor_seconds": 1e6 * step,
                    "counters": {},
                }
            )
    return {"format": FORMAT, "loads": loads}


@pytest.fixture
def runs() -> dict[str, dict[str, Any]]:
    """Return all fixed settings."""
    return {"none": run(None)} | {str(length): run(length) for length in LENGTHS["ngram"]}


def test_loads_are_balanced_and_share_no_prompt() -> None:
    """Tests that every kind is asked equally often, that no unseen prompt was tuned on, and that rows fill up."""
    loads = all_loads(alone=True)
    texts: dict[str, set[str]] = {}
    for load in loads:
        kinds = [prompt.kind for prompt in load.texts]
        assert len(kinds) == load.requests == len(load.tokens)
        assert load.concurrency <= load.requests
        if load.workload == MIXED:
            assert {kinds.count(kind) for kind in KINDS} == {load.requests // len(KINDS)}
        else:
            assert set(kinds) == {load.workload}
        texts.setdefault(load.prompts, set()).update(prompt.text for prompt in load.texts)
    assert not texts["tuning"] & texts["unseen"]


def test_what_tuning_does_not_see_is_predicted(runs: dict[str, Any]) -> None:
    """Tests that points between measured ones are predicted within 8 % where steps are smooth, and none is seen."""
    found = predictions(runs)
    known = {one.point for one in seen(sweep_of(runs, "tuning")).measurements}
    assert not any(one.point in known for one in found if one.prompts == "tuning")
    assert len(found) == 2 * len(REQUESTS) * (1 + len(LENGTHS["ngram"])) - len(known)
    drafted = [one for one in found if one.point.draft_length != 0]
    assert max(abs(one.error) for one in drafted) < 0.08
    assert sum(one.held for one in drafted) >= 0.8 * len(drafted)


def test_regrets_are_against_the_best_fixed_setting(runs: dict[str, Any]) -> None:
    """Tests that the best setting at each concurrency loses nothing and a table that is 10 % slower loses 10 %."""
    found = regrets(runs)
    assert all(min(losses) == 0.0 for losses in zip(*found.values(), strict=True))
    slower = regrets({"none": runs["none"], "table": run(None, factor=0.9)})
    assert slower["table"] == pytest.approx([0.1] * len(REQUESTS), abs=1e-6)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Tests that what is no result is named, and that settings that are not there are left out."""
    (tmp_path / "none.json").write_text(json.dumps(run(None)))
    assert list(read_runs(tmp_path, "ngram")) == ["none"]
    (tmp_path / "ngram-3.json").write_text("[]")
    with pytest.raises(InvalidInput, match=r"ngram-3\.json: expected results of an engine"):
        read_runs(tmp_path, "ngram")
