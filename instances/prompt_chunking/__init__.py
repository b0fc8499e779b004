"""Families of `prompt-chunking` problems, and of workloads for its policies."""

from __future__ import annotations

from specopt.instances.family import Family
from specopt.instances.prompt_chunking import workload
from specopt.instances.prompt_chunking.paper_4 import paper_4
from specopt.instances.prompt_chunking.random import random
from specopt.instances.prompt_chunking.single_stage import single_stage
from specopt.instances.prompt_chunking.slow_link import slow_link
from specopt.instances.prompt_chunking.slow_message import slow_message
from specopt.instances.prompt_chunking.steep_cloud import steep_cloud

FAMILIES: tuple[Family, ...] = (
    Family("prompt-chunking/paper-4", paper_4),
    Family("prompt-chunking/random", random),
    Family("prompt-chunking/slow-message", slow_message),
    Family("prompt-chunking/single-stage", single_stage),
    Family("prompt-chunking/steep-cloud", steep_cloud),
    Family("prompt-chunking/slow-link", slow_link),
)

WORKLOADS: tuple[Family, ...] = (
    Family("prompt-chunking/specbench", workload.specbench),
    Family("prompt-chunking/cnn-dm", workload.cnn_dm),
    Family("prompt-chunking/equal-prompts", workload.equal_prompts),
)
