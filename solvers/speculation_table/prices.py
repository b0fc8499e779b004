"""Reported losses of throughput due to draft lengths that depend on the batch size, by load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats


@dataclass(frozen=True)
class Price:
    """A cost, given as the share of throughput that is lost at each load.

    Parameters
    ----------
    loads
        Numbers of concurrent requests, increasing. Shares are interpolated linearly in the
        logarithm of the load, and are constant beyond the ends.
    least, usual, most
        Minimum, typical and maximum share of throughput that is lost at each load.
    source
        Summary of the reports from which the shares are taken.
    """

    loads: tuple[float, ...]
    least: tuple[float, ...]
    usual: tuple[float, ...]
    most: tuple[float, ...]
    source: str

    def at(self, sizes: Sequence[int]) -> Floats:
        """Return the minimum, typical and maximum share of throughput lost at each batch size.

        The result has three rows, in this order, and one column for each batch size in `sizes`.
        """
        shares = self.least, self.usual, self.most
        return np.array([np.interp(np.log(sizes), np.log(self.loads), of) for of in shares])


@dataclass(frozen=True)
class Prices:
    """The costs of speculation tables for one engine.

    Parameters
    ----------
    idle
        Cost of steps without drafts while speculation is enabled, compared with running without
        speculation.
    table
        Cost of configuring more than one draft length.
    shortest
        Minimum draft length in a table. It is 1 for engines that always draft at least one token.
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
    "none if all CUDA graphs stay full; on vLLM's old model runner (V1), which splits them, 14 % at"
    " one request and 6.6 % at 2, including steps without drafts",
)
FREE = Price((1,), (0.0,), (0.0,), (0.0,), "none")
USUAL = Prices(IDLE, GRAPHS)
"""Default costs, which are those of vLLM, the engine with the most published measurements."""
