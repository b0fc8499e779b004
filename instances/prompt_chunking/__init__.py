"""Families that generate `prompt-chunking` problems, or workloads for their policies."""

from __future__ import annotations

from specopt.instances.family import families
from specopt.instances.prompt_chunking import workload
from specopt.instances.prompt_chunking.paper_4 import paper_4
from specopt.instances.prompt_chunking.random import random
from specopt.instances.prompt_chunking.variants import (
    single_stage,
    slow_link,
    slow_message,
    steep_cloud,
)
from specopt.models.prompt_chunking.problem import PromptChunkingProblem

FAMILIES = families(
    PromptChunkingProblem, paper_4, random, slow_message, single_stage, steep_cloud, slow_link
)

WORKLOADS = families(
    PromptChunkingProblem, workload.specbench, workload.cnn_dm, workload.equal_prompts
)
