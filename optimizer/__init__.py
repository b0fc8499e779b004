"""specopt: optimal speculative decoding across edge and cloud.

>>> import specopt
>>> problem = specopt.generate("serving-latency/paper-1", tasks=5, seed=1)
>>> result = specopt.solve(problem)
>>> result.status.value
'optimal'
"""

from __future__ import annotations

from specopt.console import interrupts as _interrupts  # noqa: F401 - before all that takes time to load

# isort: split
from typing import TYPE_CHECKING as _TYPE_CHECKING

from specopt.api.formulation import formulation, plan_of
from specopt.api.frames import to_arrow, to_pandas, to_polars
from specopt.api.front import Front, front
from specopt.api.generate import families, generate, workload
from specopt.api.policies import PolicyComparison, compare_policies
from specopt.api.robustness import Robustness, robustness
from specopt.api.sensitivity import Change, Sensitivity, sensitivity
from specopt.api.simulate import simulate
from specopt.api.solve import methods, solve
from specopt.comparison.compare import compare
from specopt.comparison.paired import PairedTest, paired_tests
from specopt.comparison.profiles import profile_figure
from specopt.comparison.summary import MethodSummary, summaries
from specopt.comparison.table import Comparison
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.models.draft_control.problem import (
    ChannelState,
    DraftChoice,
    DraftControlPlan,
    DraftControlProblem,
)
from specopt.models.draft_stopping.problem import (
    AcceptanceRate,
    DraftStoppingPlan,
    DraftStoppingProblem,
    RoundClass,
    Transitions,
)
from specopt.models.drafting import Scores
from specopt.models.errors import InvalidInput, MissingDependency, SpecoptError, Unsupported
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem, Schedule
from specopt.models.files import load, save
from specopt.models.judge import Report, verify
from specopt.models.markov_chain import TransitionMatrix
from specopt.models.pass_time import (
    CloudDelay,
    LinearRuntime,
    PassTable,
    PiecewiseRuntime,
    TabledRuntime,
    VerificationTime,
)
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import (
    ClientClass,
    Drafter,
    DraftPool,
    PlacementProblem,
    Verifier,
)
from specopt.models.problem import Plan, Problem
from specopt.models.problem import Shown as _Shown
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from specopt.models.result import Conflict, Progress, Result, Status, Termination
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.solvers.policy import Policy
from specopt.solvers.simulation import Simulation

if _TYPE_CHECKING:
    __version__: str


def _html(shown: Problem | Result | Comparison) -> str:
    from specopt.report.result import in_notebook

    return in_notebook(shown)


def _picture(shown: Problem | Front | Comparison, plan: Plan | Result | None = None) -> object:
    from specopt.report.result import picture

    return picture(shown, plan)


_Shown.html = _html
_Shown.picture = _picture


def __getattr__(name: str) -> str:
    """Return the version on access: looking it up takes an eighth of the time of the import."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("specopt")


__all__ = [
    "AcceptanceRate",
    "Change",
    "ChannelState",
    "ClientClass",
    "CloudDelay",
    "Comparison",
    "Conflict",
    "ContinuousServingPlan",
    "ContinuousServingProblem",
    "DraftAllocationPlan",
    "DraftAllocationProblem",
    "DraftChoice",
    "DraftControlPlan",
    "DraftControlProblem",
    "DraftPool",
    "DraftStoppingPlan",
    "DraftStoppingProblem",
    "Drafter",
    "ExactDecoder",
    "FairGoodputPlan",
    "FairGoodputProblem",
    "Front",
    "InvalidInput",
    "LinearRuntime",
    "MethodSummary",
    "MissingDependency",
    "PairedTest",
    "PaperDecoder",
    "PassTable",
    "PiecewiseRuntime",
    "PlacementPlan",
    "PlacementProblem",
    "Plan",
    "Policy",
    "PolicyComparison",
    "Problem",
    "Progress",
    "PromptChunkingPlan",
    "PromptChunkingProblem",
    "Report",
    "Result",
    "Robustness",
    "RoundClass",
    "Schedule",
    "Scores",
    "Sensitivity",
    "ServingLatencyPlan",
    "ServingLatencyProblem",
    "Simulation",
    "SpecoptError",
    "Status",
    "TabledRuntime",
    "Termination",
    "TransitionMatrix",
    "Transitions",
    "Unsupported",
    "VerificationBatchPlan",
    "VerificationBatchProblem",
    "VerificationTime",
    "Verifier",
    "compare",
    "compare_policies",
    "families",
    "formulation",
    "front",
    "generate",
    "load",
    "methods",
    "paired_tests",
    "plan_of",
    "profile_figure",
    "robustness",
    "save",
    "sensitivity",
    "simulate",
    "solve",
    "summaries",
    "to_arrow",
    "to_pandas",
    "to_polars",
    "verify",
    "workload",
]
