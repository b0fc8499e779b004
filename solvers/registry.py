"""The one list of methods; every other list is derived from it."""

from __future__ import annotations

from specopt.models.errors import Unsupported
from specopt.models.problem import Problem
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.draft_allocation.brute_force import BruteForceAllocation
from specopt.solvers.draft_allocation.greedy import Greedy
from specopt.solvers.draft_allocation.milp import MilpAllocation
from specopt.solvers.draft_allocation.water_level import WaterLevel
from specopt.solvers.draft_control.best_static import BestStatic
from specopt.solvers.draft_control.brute_force import BruteForceControl
from specopt.solvers.draft_control.decoupled import Decoupled
from specopt.solvers.draft_control.double_q_learning import DoubleQLearning
from specopt.solvers.draft_control.enumeration import EnumerationControl
from specopt.solvers.draft_control.linear_program import LinearProgram
from specopt.solvers.draft_control.myopic import Myopic
from specopt.solvers.draft_control.policy_iteration import PolicyIteration
from specopt.solvers.draft_control.unimodal import Unimodal
from specopt.solvers.draft_control.value_iteration import ValueIteration
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
from specopt.solvers.prompt_chunking.best_equal import BestEqual
from specopt.solvers.prompt_chunking.brute_force import BruteForceChunking
from specopt.solvers.prompt_chunking.deadline import Deadline
from specopt.solvers.prompt_chunking.equation_3 import Equation3
from specopt.solvers.prompt_chunking.exact import ExactChunking
from specopt.solvers.prompt_chunking.fixed import Fixed as FixedChunks
from specopt.solvers.prompt_chunking.geometric import Geometric
from specopt.solvers.prompt_chunking.whole import Whole
from specopt.solvers.serving_latency.algorithm_1 import Algorithm1
from specopt.solvers.serving_latency.brute_force import BruteForce
from specopt.solvers.serving_latency.exact import Exact
from specopt.solvers.serving_latency.fixed_length import FixedLength
from specopt.solvers.serving_latency.heuristic_batching import HeuristicBatching
from specopt.solvers.serving_latency.length_aware import LengthAware
from specopt.solvers.serving_latency.max_batching import MaxBatching
from specopt.solvers.serving_latency.milp import Milp
from specopt.solvers.serving_latency.no_batching import NoBatching
from specopt.solvers.serving_latency.static_batching import StaticBatching
from specopt.solvers.serving_latency.uniform_bandwidth import UniformBandwidth
from specopt.solvers.verification_batch.algorithm_1 import Algorithm1 as Algorithm1Batch
from specopt.solvers.verification_batch.algorithm_1 import Algorithm1Drop
from specopt.solvers.verification_batch.brute_force import BruteForceBatch
from specopt.solvers.verification_batch.edf import EarliestDeadlineFirst
from specopt.solvers.verification_batch.fcfs import FirstComeFirstServed
from specopt.solvers.verification_batch.milp import MilpBatch
from specopt.solvers.verification_batch.pareto import Pareto
from specopt.solvers.verification_batch.sweep import Sweep
from specopt.solvers.verification_batch.threshold import Threshold

METHODS: tuple[type[Method], ...] = (
    Exact,
    LengthAware,
    Algorithm1,
    BruteForce,
    FixedLength,
    HeuristicBatching,
    MaxBatching,
    Milp,
    NoBatching,
    StaticBatching,
    UniformBandwidth,
    Deadline,
    ExactChunking,
    Equation3,
    BestEqual,
    BruteForceChunking,
    FixedChunks,
    Geometric,
    Whole,
    WaterLevel,
    Greedy,
    BruteForceAllocation,
    MilpAllocation,
    Dual,
    ThresholdGreedy,
    ColumnGeneration,
    BestConstant,
    Convex,
    Enumeration,
    Fixed,
    Random,
    TokensPerRound,
    Threshold,
    Sweep,
    Pareto,
    Algorithm1Batch,
    Algorithm1Drop,
    FirstComeFirstServed,
    EarliestDeadlineFirst,
    MilpBatch,
    BruteForceBatch,
    PolicyIteration,
    ValueIteration,
    Decoupled,
    LinearProgram,
    EnumerationControl,
    Unimodal,
    Myopic,
    BestStatic,
    DoubleQLearning,
    BruteForceControl,
)


def methods_for(problem_type: type[Problem]) -> tuple[type[Method], ...]:
    """Return the methods that solve a class of problems."""
    return tuple(method for method in METHODS if issubclass(problem_type, method.solves))


def default_method(problem: Problem) -> Method:
    """Return the best method for a problem: the first that takes it, in its kind's order of preference.

    Raises
    ------
    Unsupported
        If no method takes the problem.
    """
    for method in _preference(problem):
        value = method()
        if value.refusal(problem) is None:
            return value
    raise Unsupported(f"no method for {problem.kind} takes this problem")


def _preference(problem: Problem) -> tuple[type[Method], ...]:
    if isinstance(problem, ServingLatencyProblem):
        small = (BruteForce,) if problem.tasks <= 6 else ()
        return (Exact, *small, LengthAware, Algorithm1, BruteForce, HeuristicBatching)
    return methods_for(type(problem))
