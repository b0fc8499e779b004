"""Methods for `serving-latency` (paper 1)."""

from __future__ import annotations

from specopt.solvers.method import Method
from specopt.solvers.serving_latency.algorithm_1 import Algorithm1
from specopt.solvers.serving_latency.auto import AutoServing
from specopt.solvers.serving_latency.brute_force import BruteForce
from specopt.solvers.serving_latency.every_step import EveryStep
from specopt.solvers.serving_latency.exact import Exact
from specopt.solvers.serving_latency.fixed_length import FixedLength
from specopt.solvers.serving_latency.heuristic_batching import HeuristicBatching
from specopt.solvers.serving_latency.length_aware import LengthAware
from specopt.solvers.serving_latency.max_batching import MaxBatching
from specopt.solvers.serving_latency.milp import Milp
from specopt.solvers.serving_latency.no_batching import NoBatching
from specopt.solvers.serving_latency.rebatching import Rebatching
from specopt.solvers.serving_latency.stand_in import StandIn
from specopt.solvers.serving_latency.static_batching import StaticBatching  # fmt: skip
from specopt.solvers.serving_latency.uniform_bandwidth import UniformBandwidth

METHODS: tuple[type[Method], ...] = (
    AutoServing,
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
