"""Methods for `fair-goodput` (paper 5): long-run rates of clients that share one verifier."""

from __future__ import annotations

from specopt.solvers.fair_goodput.auto import AutoGoodput
from specopt.solvers.fair_goodput.best_constant import BestConstant
from specopt.solvers.fair_goodput.column_generation import ColumnGeneration
from specopt.solvers.fair_goodput.convex import Convex
from specopt.solvers.fair_goodput.dual import Dual
from specopt.solvers.fair_goodput.enumeration import Enumeration
from specopt.solvers.fair_goodput.fixed import Fixed
from specopt.solvers.fair_goodput.random import Random
from specopt.solvers.fair_goodput.threshold_greedy import ThresholdGreedy
from specopt.solvers.fair_goodput.tokens_per_round import TokensPerRound
from specopt.solvers.method import Method

METHODS: tuple[type[Method], ...] = (
    AutoGoodput,
    Dual,
    ThresholdGreedy,
    ColumnGeneration,
    BestConstant,
    Convex,
    Enumeration,
    Fixed,
    Random,
    TokensPerRound,
)
