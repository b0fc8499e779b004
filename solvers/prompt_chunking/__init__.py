"""Methods for `prompt-chunking` (paper 4, Sec. 3.3)."""

from __future__ import annotations

from specopt.solvers.method import Method
from specopt.solvers.prompt_chunking.auto import AutoChunking
from specopt.solvers.prompt_chunking.best_equal import BestEqual
from specopt.solvers.prompt_chunking.brute_force import BruteForceChunking
from specopt.solvers.prompt_chunking.deadline import Deadline
from specopt.solvers.prompt_chunking.equation_3 import Equation3
from specopt.solvers.prompt_chunking.exact import ExactChunking
from specopt.solvers.prompt_chunking.fixed import Fixed
from specopt.solvers.prompt_chunking.geometric import Geometric
from specopt.solvers.prompt_chunking.milp import MilpChunking
from specopt.solvers.prompt_chunking.whole import Whole

METHODS: tuple[type[Method], ...] = (
    AutoChunking,
    Deadline,
    ExactChunking,
    Equation3,
    BestEqual,
    BruteForceChunking,
    Fixed,
    Geometric,
    Whole,
    MilpChunking,
)
