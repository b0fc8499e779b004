"""The rules by which serving engines refuse a configuration: what `specopt export` writes must pass
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from specopt.engines.llama_cpp import CONFIDENCE, LEAST, MOST
from specopt.engines.sglang import ADAPTIVE
from specopt.engines.tensorrt_llm import BORDER, SCHEDULE, has_upper_bounds
from specopt.engines.vllm import TABLE
from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


def counts(name: str, entries: Mapping[Any, Any]) -> list[tuple[int, Any]]:
    """Return entries by batch size, increasing; JSON has the sizes as text."""
    for key in entries:
        if not str(key).isdecimal() or int(key) < 1:
            raise InvalidInput(f"{name}: expected batch sizes >= 1 as keys, got {key!r}")
    if not entries:
        raise InvalidInput(f"{name}: expected entries, got none")
    return sorted((int(key), value) for key, value in entries.items())


def vllm(found: Mapping[str, Any], version: str | None = None) -> None:
    """Raise where vLLM would refuse a configuration.

    Ranges [first, last, drafts], both ends included, positive, without overlaps, the first from 1.
    A gap and the tail carry the last drafts on; drafts above ``num_speculative_tokens`` are clamped
    to it: refused here, as the engine would do something else than it is told.

    Raises
    ------
    InvalidInput
        With the entry, what was expected and what came.
    """
    most = integer("num_speculative_tokens", found.get("num_speculative_tokens"), 1)
    if TABLE not in found:
        return
    entries = found[TABLE]
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(
            f"{TABLE}: expected a list of [first, last, drafts], got {describe(entries)}"
        )
    for i, entry in enumerate(entries):
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise InvalidInput(
                f"{TABLE}[{i}]: expected [first, last, drafts], got {describe(entry)}"
            )
        low = integer(f"{TABLE}[{i}][0]", entry[0], 1)
        integer(f"{TABLE}[{i}][1]", entry[1], low)
        integer(f"{TABLE}[{i}][2]", entry[2], 0, most)
    ordered = sorted(entries)
    if ordered[0][0] != 1:
        raise InvalidInput(f"{TABLE}: expected the first range to start at 1, got {ordered[0][0]}")
    for (_, high, _), (low, *_) in pairwise(ordered):
        if low <= high:
            raise InvalidInput(
                f"{TABLE}: expected ranges without overlaps, got one to {high} and one from {low}"
            )


def sglang(found: Mapping[str, Any], version: str | None = None) -> None:
    """Raise where SGLang would refuse a configuration, or let acceptance move the length.

    Keys of the adaptive configuration are lower bounds of the batch size; a batch below the first
    takes the first.

    Raises
    ------
    InvalidInput
        With the entry, what was expected and what came.
    """
    most = integer("speculative_num_steps", found.get("speculative_num_steps"), 1)
    integer("speculative_eagle_topk", found.get("speculative_eagle_topk"), 1, 1)
    integer(
        "speculative_num_draft_tokens",
        found.get("speculative_num_draft_tokens"),
        most + 1,
        most + 1,
    )
    if not found.get("speculative_adaptive"):
        return
    adaptive = found.get(ADAPTIVE)
    if not isinstance(adaptive, Mapping) or adaptive.get("strategy", "ema") not in (
        "ema",
        "throughput_aware",
    ):
        raise InvalidInput(f"{ADAPTIVE}: expected an object with strategy ema or throughput_aware")
    entries = counts(
        ADAPTIVE, {key: entry for key, entry in adaptive.items() if str(key).isdecimal()}
    )
    if entries[0][0] != 1:
        raise InvalidInput(f"{ADAPTIVE}: expected the first batch size 1, got {entries[0][0]}")
    for batch, entry in entries:
        steps = entry.get("candidate_steps") if isinstance(entry, Mapping) else None
        if not isinstance(steps, list) or len(steps) != 1:
            raise InvalidInput(
                f"{ADAPTIVE}.{batch}.candidate_steps: expected one number, got {describe(steps)}"
            )
        integer(f"{ADAPTIVE}.{batch}.candidate_steps[0]", steps[0], 0, most)


def tensorrt_llm(found: Mapping[str, Any], version: str | None) -> None:
    """Raise where TensorRT-LLM would refuse a configuration.

    Raises
    ------
    InvalidInput
        With the entry, what was expected and what came.
    """
    upper = has_upper_bounds(version)
    most = integer("max_draft_len", found.get("max_draft_len"), 1)
    if found.get("max_concurrency") is not None:
        raise InvalidInput(f"max_concurrency: expected none beside {SCHEDULE}")
    entries = found.get(SCHEDULE)
    if not isinstance(entries, Mapping):
        raise InvalidInput(f"{SCHEDULE}: expected an object of drafts by batch size")
    sizes = counts(SCHEDULE, entries)
    if not upper and sizes[0][0] != 1:
        raise InvalidInput(
            f"{SCHEDULE}: expected a batch size 1 before {BORDER}, got {sizes[0][0]} first"
        )
    integer(f"{SCHEDULE}.{sizes[0][0]}", sizes[0][1], most, most)
    for batch, drafts in sizes:
        integer(f"{SCHEDULE}.{batch}", drafts, 0, most)


def llama_cpp(found: Mapping[str, Any], version: str | None = None) -> None:
    """Raise where llama.cpp would refuse flags.

    Raises
    ------
    InvalidInput
        With the flag, what was expected and what came.
    """
    most = integer(MOST, found.get(MOST), 1)
    integer(LEAST, found.get(LEAST, 0), 0, most)
    number(CONFIDENCE, found.get(CONFIDENCE, 0.0), 0, 1)


RULES = {"vllm": vllm, "sglang": sglang, "tensorrt-llm": tensorrt_llm, "llama.cpp": llama_cpp}
"""By the names of the engines."""
