"""Reader for the acceptance CSV files written by speculators' evaluation tool.

Each file contains counts and cumulative acceptance rates for each subset of the evaluation data.
"""

from __future__ import annotations

import io

from specopt.instances.acceptance.bench_serve import PREFIX, RATES, from_bench
from specopt.instances.reading.fields import CsvFile
from specopt.instances.reading.lines import Lines
from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance

POSITION = "acceptance_at_pos_"


def is_acceptance_table(text: str) -> bool:
    """Return whether `text` looks like an acceptance CSV file."""
    return f"{POSITION}0" in text.partition("\n")[0]


def from_acceptance_table(text: str, where: str, subset: str | None) -> PositionAcceptance:
    """Return the acceptance by draft position for one subset.

    Raises
    ------
    InvalidInput
        If the subset is ambiguous or unknown, or if a row is malformed.
    """
    table = CsvFile(Lines(io.StringIO(text), where))
    positions = [name for name in table.header if name.startswith(POSITION)]
    table.need("subset", "num_drafts", "num_draft_tokens", "num_accepted_tokens", *positions)
    rows = {row.text_of("subset"): row for row in table}
    if subset not in rows and (subset is not None or len(rows) != 1):
        known = ", ".join(rows)
        raise InvalidInput(
            f"{where}: expected one of the subsets {known}, got {subset or 'none'}; select one with"
            " --mode"
        )
    row = rows[subset] if subset else next(iter(rows.values()))
    counts = {
        f"{PREFIX}{name}": row.within(f"num_{name}", "a count", 0.0, 1e15)
        for name in ("draft_tokens", "accepted_tokens")
    }
    counts[f"{PREFIX}num_drafts"] = row.within("num_drafts", "a count", 0.0, 1e15)
    rates = [row.within(name, "a rate in [0, 1]", 0.0, 1.0) for name in positions]
    return from_bench({RATES: rates, **counts}, where)
