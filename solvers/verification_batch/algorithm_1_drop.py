"""Algorithm 1 after dropping hopeless requests: late ones, and those too large for the memory."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.solvers.verification_batch.algorithm_1 import Algorithm1
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class Algorithm1Drop(Algorithm1):
    """Algorithm 1 after dropping hopeless requests: late ones, and those too large for the memory.

    Then the first request in its order fits alone, and the batch is empty only if nothing fits. Its distance to the
    optimum stays unbounded.
    """

    name = "algorithm-1-drop"
    source = "paper 2, Algorithm 1, hopeless requests dropped first (own); ties by index"
    guarantee = "none; a certified gap"

    def queue(self, prepared: Prepared) -> list[int]:
        """Return the requests that some batch can hold."""
        return prepared.without_hopeless(super().queue(prepared))
