"""What drafts: the time of a step's drafts by hand for each kind, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.table import speculation_table

DRAFT = {"seconds_per_token": 1e-4, "overhead_seconds": 2e-3, "seconds_per_cached_token": 1e-7}
VERIFY = {"seconds_per_token": 2e-4, "overhead_seconds": 0.03}
LINK = {"type": "remote", "round_trip_seconds": 0.02, "bits_per_token": 1e4, "bits_per_second": 1e7}


def made(drafter: Any, **more: Any) -> Runtimes:
    """Return runtimes with a drafter, and a model where it needs one."""
    needs = not isinstance(drafter, dict) or drafter.get("type") not in ("ngram", "suffix")
    data = {"verify": VERIFY, "context_tokens": 500, **({"draft": DRAFT} if needs else {}), **more}
    return Runtimes.from_dict(data if drafter is None else {**data, "drafter": drafter})


PASS = 1e-4 * 4 + 2e-3 + 1e-7 * 4 * 500
BLOCK = 1e-4 * 4 * 3 + 2e-3 + 1e-7 * 4 * 500


@pytest.mark.parametrize(
    ("drafter", "by_hand"),
    [
        (None, 3 * PASS),
        ({"type": "model"}, 3 * PASS),
        ({"type": "head"}, 3 * (PASS - 1e-7 * 4 * 500)),
        ({"type": "parallel"}, BLOCK),
        ({"type": "ngram"}, 0.0),
        ({"type": "suffix", "seconds_per_step": 1e-3}, 1e-3),
        (LINK, 3 * PASS + 0.02 + 4 * 3 * 1e4 / 1e7),
        ({**LINK, "drafter": {"type": "parallel"}}, BLOCK + 0.02 + 4 * 3 * 1e4 / 1e7),
    ],
)
def test_three_drafts_of_four_requests_by_hand(drafter: Any, by_hand: float) -> None:
    """Tests that a step takes its drafts besides its verification, and without drafts what that
    costs.
    """
    alone, speculating = made(drafter, zero_draft_cost=0.1).seconds(4, 3)
    verify = 2e-4 * 4 * np.arange(1, 5) + 0.03
    assert alone[0, 3, 0] == pytest.approx(verify[0])
    assert speculating[0, 3, 0] == pytest.approx(verify[0] / 0.9)
    assert speculating[0, 3, 3] - verify[3] == pytest.approx(by_hand, abs=1e-15)


def test_a_head_is_measured_without_contexts() -> None:
    """Tests that of a head's table the passes on the fewest cached tokens count, whatever the
    context.
    """
    table = {"table": {"batch": [1, 2], "new_tokens": [1, 1], "seconds": [1e-3, 2e-3]}}
    alone, speculating = made({"type": "head"}, draft=table).seconds(2, 2)
    assert alone.shape == (1, 2, 1)
    verify = 2e-4 * np.array([1, 2]) * 3 + 0.03
    assert speculating[0, :, 2] - verify == pytest.approx([2e-3, 4e-3])
    verified = {
        "table": {
            "batch": [1] * 4,
            "new_tokens": [1, 1, 2, 2],
            "cached_tokens": [128, 384] * 2,
            "seconds": [0.01, 0.02, 0.01, 0.02],
        }
    }
    data = {"draft": table, "verify": verified}
    assert Runtimes.from_dict({**data, "drafter": {"type": "head"}}).contexts == (128.0, 384.0)
    with pytest.raises(
        InvalidInput,
        match="context_tokens: draft and verify passes must be measured with the same",
    ):
        Runtimes.from_dict(data)
    assert made({"type": "head"}, draft=table).covers(2, 2).all()
    assert not made({"type": "parallel"}, draft=table).covers(2, 2)[:, 1:].any()


def test_cheaper_drafters_draft_more() -> None:
    """Tests that from the link over the model to the search in the text the lengths do not fall."""
    longest = []
    for drafter in (LINK, {"type": "model"}, {"type": "parallel"}, {"type": "ngram"}):
        found = speculation_table(made(drafter), PositionAcceptance.constant(0.8), max_batch=8)
        longest.append(found.schedule().longest)
    assert longest == sorted(longest)
    assert longest[0] < longest[-1]


@pytest.mark.parametrize(
    ("drafter", "message"),
    [
        (
            {},
            (
                r"runtime.drafter.type: expected one of model, head, parallel, ngram, suffix,"
                r" remote, got \{\}"
            ),
        ),
        ("ngram", "runtime.drafter.type: expected one of"),
        ({"type": "eagle"}, "runtime.drafter.type: expected one of .*, got 'eagle'"),
        (
            {"type": "head", "seconds": 1},
            "runtime.drafter: unknown field 'seconds'; the fields of head are type",
        ),
        (
            {"type": "ngram", "seconds_per_step": -1},
            "runtime.drafter.seconds_per_step: expected a number",
        ),
        ({**LINK, "bits_per_second": 0}, "runtime.drafter.bits_per_second: expected a number in "),
        ({"type": "remote"}, "runtime.drafter.round_trip_seconds: expected a number"),
        (
            {**LINK, "drafter": LINK},
            "runtime.drafter.drafter.type: a remote drafter cannot contain another",
        ),
    ],
)
def test_bad_drafters_are_named(drafter: Any, message: str) -> None:
    """Tests that each unusable drafter is refused with its place."""
    with pytest.raises(InvalidInput, match=message):
        made(drafter)


def test_models_are_where_they_are_needed() -> None:
    """Tests that a drafter without a model takes no runtime of one, and that the others need
    one.
    """
    with pytest.raises(InvalidInput, match="ngram drafts without a model"):
        made({"type": "ngram"}, draft=DRAFT)
    with pytest.raises(InvalidInput, match="head requires a draft runtime"):
        Runtimes.from_dict({"verify": VERIFY, "drafter": {"type": "head"}})
