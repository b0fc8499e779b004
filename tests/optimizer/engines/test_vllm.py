"""vLLM's part of `speculative_config`."""

from __future__ import annotations

import pytest

from specopt.engines.vllm import speculative_config
from specopt.solvers.speculation_table.table import SpeculationTable


@pytest.mark.parametrize(
    ("ranges", "most"), [([(1, 4, 5), (5, 16, 2), (17, 64, 0)], 5), ([(1, 8, 1), (9, 64, 3)], 3), ([(1, 64, 0)], 1)]
)
def test_config(ranges: list[tuple[int, int, int]], most: int) -> None:
    """Tests that ranges are lists, and that the longest draft is what vLLM sets up for: one token at least."""
    ones = (1.0,) * len(ranges)
    table = SpeculationTable(
        ranges=tuple(ranges), speedup=ones, speedup_limits=None, loss=ones, most_drafts=8, robust=False, notes=()
    )
    assert speculative_config(table) == {
        "num_speculative_tokens": most,
        "num_speculative_tokens_per_batch_size": [list(entry) for entry in ranges],
    }
