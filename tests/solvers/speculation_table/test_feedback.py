"""Tables from what an engine measured while it drafted by the table before: nothing shrinks from
round to round.
"""

from __future__ import annotations

import numpy as np

from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.table import SpeculationTable, speculation_table

RUNTIMES = Runtimes.from_dict(
    {
        "draft": {"seconds_per_token": 2e-5, "overhead_seconds": 0.002},
        "verify": {"seconds_per_token": 4e-4, "overhead_seconds": 0.03},
    }
)
TRUTH, LONGEST = 0.8, 5


def served(table: SpeculationTable, rng: np.random.Generator) -> PositionAcceptance:
    """Return what the counters of an engine with this table say, at batch sizes from 1 to 256."""
    schedule = table.schedule()
    drafted = np.array([schedule.at(int(batch)) or 0 for batch in rng.integers(1, 257, 100_000)])
    drafted = drafted[drafted > 0]
    run = np.minimum(rng.geometric(1.0 - TRUTH, drafted.size) - 1, drafted)
    accepted = [float((run > position).sum()) for position in range(LONGEST)]
    return PositionAcceptance.from_totals(float(drafted.size), float(drafted.sum()), accepted)


def test_rounds_of_use_do_not_shrink_the_drafts() -> None:
    """Tests that exporting, serving and measuring three times over gives the table that the true
    rate gives.
    """
    rng = np.random.default_rng(0)
    first = speculation_table(
        RUNTIMES, PositionAcceptance.constant(TRUTH), max_batch=256, max_length=LONGEST
    )
    assert len({drafts for *_, drafts in first.ranges}) > 2
    table = first
    for _ in range(3):
        measured = served(table, rng)
        assert (measured.lower <= TRUTH).all()
        assert (measured.upper >= TRUTH).all()
        table = speculation_table(RUNTIMES, measured, max_batch=256, max_length=LONGEST)
        wanted, found = (
            np.array([one.schedule().at(batch) or 0 for batch in range(1, 257)])
            for one in (first, table)
        )
        assert abs(found - wanted).mean() < 0.05
