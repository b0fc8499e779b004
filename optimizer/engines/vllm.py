"""vLLM: drafts per batch size, a part of its ``speculative_config``."""

from __future__ import annotations

from typing import Any

from specopt.solvers.speculation_table.table import SpeculationTable


def speculative_config(table: SpeculationTable) -> dict[str, Any]:
    """Return the part to paste into ``speculative_config``; vLLM wants at least one token to speculate with."""
    return {
        "num_speculative_tokens": max(1, max(choice for *_, choice in table.ranges)),
        "num_speculative_tokens_per_batch_size": [list(entry) for entry in table.ranges],
    }
