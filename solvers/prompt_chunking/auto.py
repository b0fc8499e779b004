"""The portfolio for `prompt-chunking`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.auto import Auto
from specopt.solvers.method import Method
from specopt.solvers.prompt_chunking.deadline import Deadline
from specopt.solvers.prompt_chunking.equation_3 import Equation3
from specopt.solvers.prompt_chunking.exact import ExactChunking
from specopt.solvers.prompt_chunking.whole import Whole


@dataclass(frozen=True)
class AutoChunking(Auto):
    """Chunks by a deadline and a local search, then the search that brackets the least deadline."""

    solves: ClassVar[type[PromptChunkingProblem]] = PromptChunkingProblem
    order: ClassVar[tuple[type[Method], ...]] = (Deadline, ExactChunking)
    instead: ClassVar[tuple[type[Method], ...]] = (Equation3, Whole)
