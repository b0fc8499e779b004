"""The rules by which serving engines refuse a configuration: what `specopt export` writes must pass
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from specopt.engines.llama_cpp import CONFIDENCE, LEAST, MOST
from specopt.engines.sglang import ADAPTIVE
from specopt.engines.tensorrt_llm import SCHEDULE, has_upper_bounds
from specopt.engines.vllm import TABLE

Config = Mapping[str, Any]


def whole(value: Any, low: int, high: float = math.inf) -> int:
    """Return a whole number of a range."""
    assert isinstance(value, int) and low <= value <= high, f"{value} is not in {low} to {high}"
    return value


def by_batch(entries: Mapping[Any, Any]) -> list[tuple[int, Any]]:
    """Return entries by batch size, increasing; JSON has the sizes as text."""
    assert entries and all(str(key).isdecimal() and int(key) >= 1 for key in entries), entries
    return sorted((int(key), value) for key, value in entries.items())


def vllm(found: Config, version: str | None = None) -> None:
    """Check ranges [first, last, drafts], both ends included, without overlaps, the first from 1.

    A gap and the tail carry the last drafts on; drafts above ``num_speculative_tokens`` are clamped
    to it: refused here, as the engine would do something else than the configuration says.
    """
    most = whole(found["num_speculative_tokens"], 1)
    if TABLE not in found:
        return
    ranges = sorted(found[TABLE])
    assert ranges and ranges[0][0] == 1, "the first range starts at 1"
    for low, high, drafts in ranges:
        whole(high, whole(low, 1))
        whole(drafts, 0, most)
    assert all(before[1] < after[0] for before, after in pairwise(ranges)), "ranges overlap"


def sglang(found: Config, version: str | None = None) -> None:
    """Check that acceptance cannot move the length.

    Keys of the adaptive configuration are lower bounds of the batch size; a batch below the first
    takes the first.
    """
    most = whole(found["speculative_num_steps"], 1)
    whole(found["speculative_eagle_topk"], 1, 1)
    whole(found["speculative_num_draft_tokens"], most + 1, most + 1)
    if found.get("speculative_adaptive"):
        adaptive = dict(found[ADAPTIVE])
        assert adaptive.pop("strategy", "ema") in ("ema", "throughput_aware")
        sizes = by_batch({key: slot for key, slot in adaptive.items() if str(key).isdecimal()})
        assert sizes[0][0] == 1, "the first batch size is 1"
        for _, slot in sizes:
            (steps,) = slot["candidate_steps"]
            whole(steps, 0, most)


def tensorrt_llm(found: Config, version: str | None) -> None:
    """Check drafts by batch size, which begin with the longest."""
    most = whole(found["max_draft_len"], 1)
    assert found.get("max_concurrency") is None, "there is a schedule"
    sizes = by_batch(found[SCHEDULE])
    assert has_upper_bounds(version) or sizes[0][0] == 1, "the first batch size is 1"
    whole(sizes[0][1], most, most)
    for _, drafts in sizes:
        whole(drafts, 0, most)


def llama_cpp(found: Config, version: str | None = None) -> None:
    """Check flags."""
    whole(found.get(LEAST, 0), 0, whole(found[MOST], 1))
    assert 0 <= found.get(CONFIDENCE, 0.0) <= 1


RULES = {"vllm": vllm, "sglang": sglang, "tensorrt-llm": tensorrt_llm, "llama.cpp": llama_cpp}
"""By the names of the engines."""
