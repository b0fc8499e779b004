"""Hypothesis strategies for valid `serving-latency` problems and plans.

The problems cover a much wider range than the settings in the paper.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.pass_time import LinearRuntime, PiecewiseRuntime, Runtime
from specopt.models.serving_data import ServingData
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem

ALL_MECHANISMS = ("pipelined", "sequential", "autoregressive", "any")


@st.composite
def magnitudes(draw: st.DrawFn, low: int, high: int) -> float:
    """Draw a number d x 10^e, where d has only a few digits and low <= e < high."""
    return draw(st.integers(10, 99)) / 10 * 10.0 ** draw(st.integers(low, high - 1))


paper_decoders = st.builds(
    PaperDecoder, layers=st.integers(1, 4), hidden=st.integers(1, 64), ffn=st.integers(1, 128)
)


@st.composite
def exact_decoders(draw: st.DrawFn) -> ExactDecoder:
    """Draw a decoder with the exact cost model. Some decoders use grouped-query attention."""
    kv_heads = draw(st.integers(1, 4))
    return ExactDecoder(
        layers=draw(st.integers(1, 4)),
        hidden=draw(st.integers(1, 64)),
        ffn=draw(st.integers(1, 128)),
        heads=kv_heads * draw(st.integers(1, 4)),
        kv_heads=kv_heads,
        head_dim=draw(st.integers(1, 16)),
        gated=draw(st.booleans()),
        vocabulary=draw(st.integers(1, 500)),
        tied=draw(st.booleans()),
        bytes_per_value=draw(st.sampled_from([2, 1, 4])),
    )


decoders = paper_decoders | exact_decoders()


def linear_runtimes() -> st.SearchStrategy[LinearRuntime]:
    """Return a strategy for linear runtime models.

    Their slopes and overheads may be zero and otherwise cover many orders of magnitude.
    """
    return st.builds(
        LinearRuntime,
        seconds_per_flop=magnitudes(-12, -6) | st.just(0.0),
        overhead_seconds=magnitudes(-5, 1) | st.just(0.0),
    )


piecewise_runtimes = st.builds(
    PiecewiseRuntime, pieces=st.lists(linear_runtimes(), min_size=2, max_size=3).map(tuple)
)
"""Runtime models that are the maximum of two or three linear runtimes.

Some of the linear runtimes may never attain the maximum.
"""

runtimes = linear_runtimes() | piecewise_runtimes


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    tasks: tuple[int, int] = (1, 5),
    max_input: int = 30,
    max_output: int = 8,
    max_length: int = 3,
    mechanisms: Sequence[Any] = ALL_MECHANISMS,
    output_lengths: Sequence[Any] = ("conservative", "known"),
    runtime: st.SearchStrategy[Runtime] = runtimes,
    rounds: Sequence[Any] = ("mean",),
    feasible: bool = True,
) -> ServingLatencyProblem:
    """Draw a serving-latency problem.

    If `feasible` is set, the memory is large enough for every single task. Otherwise, the memory
    may have any size.
    """
    K = draw(st.integers(*tasks))
    inputs = draw(lists_of(st.integers(1, max_input), K))
    outputs = draw(lists_of(st.integers(1, max_output), K))
    draft, verify = draw(decoders), draw(decoders)
    longest = max(outputs)
    if draw(st.booleans()):
        longest = draw(st.integers(longest, max_output))
    mechanism = draw(st.sampled_from(mechanisms))
    counted = draw(st.sampled_from(output_lengths))
    counts = draw(st.sampled_from(rounds))
    largest = max(inputs) + longest
    if counted == "known":
        largest = max(i + o for i, o in zip(inputs, outputs, strict=True))
    return ServingLatencyProblem(
        input_tokens=np.array(inputs),
        output_tokens=np.array(outputs),
        snr=np.array(draw(lists_of(magnitudes(-2, 6), K))),
        bandwidth_hz=draw(magnitudes(2, 8)),
        draft=draft,
        verify=verify,
        draft_runtime=draw(runtime),
        verify_runtime=draw(runtime),
        draft_memory_bytes=draw(memory(draft, largest, K, feasible)),
        verify_memory_bytes=draw(st.none() | memory(verify, largest, K, feasible)),
        acceptance_rate=draw(st.integers(1, 99)) / 100,
        max_speculation_length=draw(st.integers(1, max_length)),
        output_lengths=counted,
        rounds=counts,
        max_output_tokens=longest if draw(st.booleans()) or longest > max(outputs) else None,
        mechanism=mechanism,
        embedding_bits_per_token=draw(st.none() | magnitudes(0, 5)),
    )


@st.composite
def memory(
    draw: st.DrawFn, model: PaperDecoder | ExactDecoder, tokens: int, K: int, feasible: bool
) -> float:
    """Draw a memory size between the needs of one task and K + 1 tasks of the largest size.

    If `feasible` is not set, the memory may be too small even for a single task.
    """
    quarters = draw(st.integers(4 if feasible else 0, 4 * K + 4))
    return float(model.parameter_bytes + quarters * model.kv_bytes_per_token * tokens / 4)


@st.composite
def plans(draw: st.DrawFn, problem: ServingData[Any]) -> ServingLatencyPlan:
    """Draw a plan that contains every task once.

    The bandwidth shares sum to at most 1, but the batches may exceed the memory.
    """
    K = problem.tasks
    order = draw(st.permutations(range(K)))
    cuts = [0, *(k for k in range(1, K) if draw(st.booleans())), K]
    weights = draw(lists_of(st.integers(1, 100), K))
    spare = draw(st.integers(0, 20))
    mechanism = draw(st.sampled_from(problem.mechanisms))
    length = (
        0
        if mechanism == "autoregressive"
        else draw(st.integers(1, problem.max_speculation_length or 1))
    )
    return ServingLatencyPlan(
        speculation_length=length,
        batches=tuple(tuple(order[a:b]) for a, b in itertools.pairwise(cuts)),
        bandwidth_share=np.array(weights) / (sum(weights) + spare),
        mechanism=mechanism if problem.mechanism == "any" else None,
    )


@st.composite
def served_problems(draw: st.DrawFn, /, **kwargs: Any) -> ServingLatencyProblem:
    """Draw a problem with data that is typical of deployments.

    Examples are acceptance rates per task and predicted output lengths.
    """
    problem = draw(problems(**kwargs))
    rows = lists_of(st.integers(1, problem.longest_output), problem.tasks)
    changes: dict[str, Any] = {}
    if draw(st.booleans()):
        rate = st.integers(1, 99).map(lambda percent: percent / 100)
        changes["acceptance_rate"] = draw(lists_of(rate, problem.tasks))
    if draw(st.integers(0, 3)) == 0:
        changes |= {
            "output_lengths": "predicted",
            "output_samples": draw(st.lists(rows, min_size=1, max_size=3)),
        }
    return ServingLatencyProblem.from_dict(problem.to_dict() | changes)
