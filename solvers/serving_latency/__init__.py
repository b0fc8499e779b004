"""Methods for `serving-latency` (paper 1)."""

from __future__ import annotations

from specopt.solvers.method import Method
from specopt.solvers.serving_latency.algorithm_1 import Algorithm1, FixedLength, UniformBandwidth
from specopt.solvers.serving_latency.brute_force import BruteForce
from specopt.solvers.serving_latency.equal_sizes import (
    HeuristicBatching,
    MaxBatching,
    NoBatching,
    StaticBatching,
)  # fmt: skip
from specopt.solvers.serving_latency.every_step import EveryStep
from specopt.solvers.serving_latency.exact import Exact
from specopt.solvers.serving_latency.length_aware import LengthAware
from specopt.solvers.serving_latency.milp import Milp
from specopt.solvers.serving_latency.rebatching import Rebatching
from specopt.solvers.serving_latency.stand_in import StandIn

METHODS: tuple[type[Method], ...] = (
    Exact,
    LengthAware,
    Algorithm1,
    BruteForce,
    EveryStep,
    FixedLength,
    HeuristicBatching,
    MaxBatching,
    Milp,
    NoBatching,
    Rebatching,
    StandIn,
    StaticBatching,
    UniformBandwidth,
)
