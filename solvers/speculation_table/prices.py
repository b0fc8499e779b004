"""Costs of draft lengths per batch size in addition to the drafts: ranges by engine and load, and
their sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats


@dataclass(frozen=True)
class Price:
    """Share of throughput that is lost, by load.

    Parameters
    ----------
    loads
        Requests at a time, increasing; between them the logarithm of the load counts, beyond them
        the last.
    least, usual, most
        Shares at these loads.
    source
        Who reported them.
    """

    loads: tuple[float, ...]
    least: tuple[float, ...]
    usual: tuple[float, ...]
    most: tuple[float, ...]
    source: str

    def at(self, sizes: Floats) -> tuple[Floats, Floats, Floats]:
        """Return least, usual and most at batch sizes."""
        known = np.log(self.loads)
        return tuple(
            np.interp(np.log(sizes), known, of) for of in (self.least, self.usual, self.most)
        )  # type: ignore[return-value]


@dataclass(frozen=True)
class Prices:
    """Costs of one engine.

    Parameters
    ----------
    idle
        Cost of steps without drafts in an engine that speculates, compared with one that does not.
    table
        Cost of having several draft lengths at all.
    shortest
        The shortest draft of a table; 1: the engine drafts at least one token, or should.
    """

    idle: Price
    table: Price
    shortest: int = 0


IDLE = Price(
    (2, 189),
    (0.0, 0.0),
    (0.066, 0.216),
    (0.31, 0.31),
    "0 to 4 % with n-grams on CPUs, 6.6 % at 2 requests and 21.6 % at 189 on one GPU, 20 to 31 % on"
    " an H100",
)
GRAPHS = Price(
    (1, 2, 189),
    (0.0, 0.0, 0.0),
    (0.07, 0.033, 0.0),
    (0.14, 0.066, 0.066),
    "none if all CUDA graphs stay full; on vLLM's old model runner (V1), which cuts them into"
    " pieces, 14 % at one request; 6.6 % at 2, steps without drafts included",
)
FREE = Price((1,), (0.0,), (0.0,), (0.0,), "none")
USUAL = Prices(IDLE, GRAPHS)
"""vLLM's, which are known best."""
