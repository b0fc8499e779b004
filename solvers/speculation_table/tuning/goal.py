"""The goal of a choice of draft lengths, and the measured cases to which it applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import integer, number, positive
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.sweep import MAX_CONCURRENCY, MAX_DRAFTS, TPOT
from specopt.solvers.speculation_table.prices import USUAL, Prices
from specopt.solvers.speculation_table.tuning.grid import Case
from specopt.solvers.speculation_table.tuning.predictions import Predictor

WHOLE = "all"
"""Name of the workload that stands for all workloads together."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The goal of a choice of draft lengths, with its constraints.

    Parameters
    ----------
    max_batch, max_length
        Maximum batch size and maximum draft length. None selects the largest measured value.
    tpot_seconds
        Maximum time per output token, in seconds. If a maximum is given, the option that serves the
        most requests is chosen. If it is None, the option with the best throughput is chosen.
    tpot_of
        Statistic of the time per output token: "mean", "p50" or "p99".
    ttft_seconds
        Maximum mean wait for the first token, in seconds, or None for no limit.
    loss
        Maximum share of throughput that may be lost at a batch size to reduce the number of ranges.
    robust
        Whether to choose by the lower limit of the speed-up, and to exclude every draft length that
        may be slower than no speculation.
    weights
        Weight of each measured number of concurrent requests, or None for equal weights.
    workload
        Workload to serve, or None for all workloads with equal shares of the tokens.
    context_tokens
        Context to serve, or None for all measured contexts with equal shares of the tokens.
    mix
        Shares of the generated tokens by workload, or None for equal shares.
    extrapolate
        Whether to consider options outside the measured range.
    concurrencies
        Loads to consider in the regret bound, in addition to the measured loads.
    draft_lengths
        Draft lengths that may be chosen in addition to 0, provided that they lie between measured
        lengths. The regret bound includes all of these lengths. If there are none, all lengths
        up to the longest measured length may be chosen.
    single
        Whether to use the same draft length for every batch size, as some engines require.
    prices
        Costs of speculation tables for the engine.
    room
        Numbers of requests that fit in memory without and with a drafter, or None for no limit.
    """

    max_batch: int | None = None
    max_length: int | None = None
    tpot_seconds: float | None = None
    tpot_of: str = "mean"
    ttft_seconds: float | None = None
    loss: float = 0.01
    robust: bool = False
    weights: Mapping[int, float] | None = None
    workload: str | None = None
    context_tokens: int | None = None
    mix: Mapping[str, float] | None = None
    extrapolate: bool = False
    concurrencies: tuple[int, ...] = ()
    draft_lengths: tuple[int, ...] = ()
    single: bool = False
    prices: Prices = USUAL
    room: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.max_batch is not None:
            integer("max_batch", self.max_batch, 1, MAX_CONCURRENCY)
        if self.max_length is not None:
            integer("max_length", self.max_length, 1, MAX_DRAFTS)
        if self.tpot_of not in TPOT:
            raise InvalidInput(
                f"tpot: expected one of {', '.join(TPOT)}, got {describe(self.tpot_of)}"
            )
        for name, target in (("tpot", self.tpot_seconds), ("ttft", self.ttft_seconds)):
            if target is not None:
                positive(name, target)
        if self.ttft_seconds is not None and self.tpot_seconds is None:
            raise InvalidInput("ttft: a target for the time per output token is required as well")
        number("loss", self.loss, 0, below=1)
        for concurrency, weight in (self.weights or {}).items():
            number(f"weights[{concurrency}]", weight, 0)
        for name, share in (self.mix or {}).items():
            positive(f"mix[{name}]", share)

    def shares(self, concurrencies: Sequence[int]) -> Floats | None:
        """Return the weights of the loads `concurrencies`, or None if all weights are equal."""
        if self.weights is None:
            return None
        weights = np.array([float(self.weights.get(c, 0.0)) for c in concurrencies])
        if not weights.any():
            raise InvalidInput(
                "weights: expected a positive weight for at least one batch size up to the largest"
                " batch, got none"
            )
        return weights


def cases_of(predictor: Predictor, goal: Goal) -> list[Case]:
    """Return the workloads and contexts of the goal, each with its share of the tokens."""
    known = predictor.sweep.workloads
    for name in [*(goal.mix or ()), *([] if goal.workload is None else [goal.workload])]:
        if name not in known:
            listed = ", ".join(describe(one) for one in known[:20])
            where = "workload" if goal.mix is None else "mix"
            raise InvalidInput(
                f"{where}: expected a measured workload ({listed}), got {describe(name)}"
            )
    named = [name for name in known if name != WHOLE or len(known) == 1]
    shares = goal.mix or dict.fromkeys(named if goal.workload is None else [goal.workload], 1.0)
    found, total, context = [], sum(shares.values()), goal.context_tokens
    conditions = predictor.sweep.conditions
    for name, share in shares.items():
        own = sorted({one.context_tokens for one in conditions if one.workload == name})
        parts = np.ones(len(own)) / len(own)
        if context is not None:
            if not own[0] <= context <= own[-1] and not (goal.extrapolate and own[0]):
                of = f" of workload {describe(name)}" if name else ""
                raise InvalidInput(
                    f"context_tokens: expected the measured range{of}, {own[0]} to {own[-1]}, got"
                    f" {context}"
                )
            # The time per token is assumed to be linear in the context.
            parts = np.array([np.interp(context, own, one) for one in np.eye(len(own))])
        found += [
            (name, at, share / total * part)
            for at, part in zip(own, parts.tolist(), strict=True)
            if part
        ]
    return found
