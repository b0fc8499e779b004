"""A second opinion on serving latency: slow, obvious, written from paper 1 again, and importing
nothing of specopt.

Everything works on the JSON form of a problem and of a plan. Every sum is a loop over decoding
steps, batches and draft passes, with the symbols of the paper: l, L (Eq. 7), n, b, I_m, O_m.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

Json = dict[str, Any]
MECHANISMS = ("pipelined", "sequential", "autoregressive")


# ------------------------------------------------------------------ models


def parameter_bytes(model: Json) -> int:
    """Eq. 9, or the matrices and embeddings of the exact cost model."""
    J, h1, h2 = model["layers"], model["hidden"], model["ffn"]
    if "cost" not in model:
        return int(J * (8 * h1 * h1 + 4 * h1 * h2))
    embeddings = h1 * model["vocabulary"] * (1 if model["tied"] else 2)
    return int((J * exact_layer(model) + embeddings) * model.get("bytes_per_value", 2))


def exact_layer(model: Json) -> int:
    """Weights of one layer: Q and output, K and V, then two or three matrices of the feed-forward
    network.
    """
    h1 = model["hidden"]
    queries = 2 * h1 * model["head_dim"] * model["heads"]
    keys = 2 * h1 * model["head_dim"] * model["kv_heads"]
    return int(queries + keys + (3 if model["gated"] else 2) * h1 * model["ffn"])


def kv_bytes(model: Json) -> int:
    """Bytes per cached token (Eq. 10, or keys and values of the KV heads)."""
    if "cost" not in model:
        return int(4 * model["layers"] * model["hidden"])
    return int(
        2
        * model["layers"]
        * model["kv_heads"]
        * model["head_dim"]
        * model.get("bytes_per_value", 2)
    )


def draft_flops(model: Json, padded: float, L: float, i: int, n: int) -> float:
    """Eq. 13: F^d_{i,n,m}, draft pass i of step n."""
    J, h1, h2 = model["layers"], model["hidden"], model["ffn"]
    prefill = n == 1 and i == 1
    kv = padded + ((n - 1) * L - 1) + i - 1
    if "cost" in model:
        m, t = (padded, padded) if prefill else (1, kv + 1)
        return exact_flops(model, m, t, 1)
    if prefill:
        return float(J * (8 * padded * h1**2 + 4 * padded**2 * h1 + 4 * padded * h1 * h2))  # Eq. 11
    return float(J * (8 * h1**2 + 4 * (kv + 1) * h1 + 4 * h1 * h2))  # Eq. 12


def verify_flops(model: Json, padded: float, L: float, l: int, n: int) -> float:  # noqa: E741
    """Eq. 14: F^v_{n,m}."""
    J, h1, h2 = model["layers"], model["hidden"], model["ffn"]
    kv = padded + (n - 1) * L - 1
    if "cost" in model:
        m, t = (padded + l, padded + l) if n == 1 else (1 + l, kv + l + 1)
        return exact_flops(model, m, t, 1 + l)
    if n == 1:
        return float(4 * J * h1 * (padded + l) * (2 * h1 + padded + l + h2))
    return float(4 * J * h1 * (1 + l) * (2 * h1 + kv + l + 1 + h2))


def exact_flops(model: Json, m: float, t: float, logits: int) -> float:
    """A pass of m new tokens over a total length t in the exact cost model."""
    per_layer = 2 * exact_layer(model) * m + 4 * model["heads"] * model["head_dim"] * m * t
    return float(model["layers"] * per_layer + 2 * model["hidden"] * model["vocabulary"] * logits)


def pass_seconds(runtime: Json, b: int, flops: float, m: float = 0, t: float = 0) -> float:
    """Eq. 17, or the largest of several such lines; or measured passes of m new tokens over a total
    length t.
    """
    if "passes" in runtime:
        passes = runtime["passes"]
        columns = [passes["batch"], passes["new_tokens"], passes["cached_tokens"]]
        grid = dict(zip(zip(*columns, strict=True), passes["seconds"], strict=True))
        return interpolated(grid, [sorted(set(column)) for column in columns], (b, m, t - m), ())
    pieces = runtime.get("pieces", [runtime])
    return max(float(p["seconds_per_flop"] * flops * b + p["overhead_seconds"]) for p in pieces)


def interpolated(
    grid: dict[Any, float], axes: list[list[float]], at: Sequence[float], fixed: tuple[Any, ...]
) -> float:
    """One axis after the other: linear between points, the first value below them, the last slope
    beyond.
    """
    if not axes:
        return grid[fixed]
    axis, rest = axes[0], axes[1:]
    if len(axis) == 1 or at[0] <= axis[0]:
        return interpolated(grid, rest, at[1:], (*fixed, axis[0]))
    low, high = next(pair for pair in pairwise(axis) if at[0] <= pair[1] or pair[1] == axis[-1])
    below, above = (interpolated(grid, rest, at[1:], (*fixed, one)) for one in (low, high))
    return below + (above - below) * (at[0] - low) / (high - low)


# ------------------------------------------------------------------ acceptance


def tokens_per_step(problem: Json, l: int) -> float:  # noqa: E741
    """Eq. 7 as the sum that it is: 1 + alpha + ... + alpha^l."""
    return 1.0 if l == 0 else math.fsum(problem["acceptance_rate"] ** i for i in range(l + 1))


def steps(output: float, L: float) -> int:
    """Eq. 8: the quotient rounded up, one that is an integer but for rounding taken as that
    integer.
    """
    q = output / L
    for r in (math.floor(q), math.floor(q) + 1):
        if abs(q - r) <= 1e-12 * max(1.0, q):
            return r
    return math.ceil(q)


def slowest_steps(Os: list[int], alpha: Fraction, l: int) -> int:  # noqa: E741
    """The expected largest of independent numbers of rounds, rounded up, in rational arithmetic."""
    gains = [alpha**j * (1 - alpha) for j in range(l)] + [alpha**l]  # of 1, ..., l + 1 tokens
    made = {0: Fraction(1)}
    expected = Fraction(0)
    while min(made) < max(Os):
        chance = Fraction(1)
        for O in Os:  # noqa: E741
            chance *= sum((mass for tokens, mass in made.items() if tokens >= O), Fraction(0))
        expected += 1 - chance  # that the slowest is not done
        later: dict[int, Fraction] = {}
        for tokens, mass in made.items():
            for more, gain in enumerate(gains, start=1):
                capped = min(tokens + more, max(Os))
                later[capped] = later.get(capped, Fraction(0)) + mass * gain
        made = {tokens: mass for tokens, mass in later.items() if mass}
    return steps(float(expected), 1.0)


# ------------------------------------------------------------------ the judge


def longest_output(problem: Json) -> int:
    """O_max."""
    return int(problem.get("max_output_tokens", max(problem["output_tokens"])))


def outputs(problem: Json) -> list[int]:
    """The output length that each task counts with."""
    if problem["output_lengths"] == "known":
        return list(problem["output_tokens"])
    return [longest_output(problem)] * len(problem["output_tokens"])


def mechanism_of(problem: Json, plan: Json) -> str:
    """The mechanism that a plan runs with."""
    named = problem.get("mechanism", "pipelined")
    return str(plan["mechanism"] if named == "any" else named)


def stages(
    problem: Json,
    mechanism: str,
    b: int,
    padded: int,
    l: int,  # noqa: E741
    n: int,
) -> tuple[float, float]:
    """T^d and T^v of a batch at step n (Eq. 18, 19)."""
    L = tokens_per_step(problem, l)
    before = padded + (n - 1) * L
    new = padded + l if n == 1 else 1 + l
    flops = verify_flops(problem["verify"], padded, L, l, n)
    verify = pass_seconds(problem["verify_runtime"], b, flops, new, before + l)
    if mechanism == "autoregressive":
        return 0.0, verify
    draft = 0.0
    for i in range(1, l + 1):
        new = padded if n == i == 1 else 1
        flops = draft_flops(problem["draft"], padded, L, i, n)
        draft += pass_seconds(problem["draft_runtime"], b, flops, new, before + i - 1)
    return draft, verify


def makespan(mechanism: str, times: list[tuple[float, float]]) -> float:
    """The time of one step for batches in pipeline order (Eq. 20, 21)."""
    if mechanism != "pipelined":
        return sum(draft + verify for draft, verify in times)
    draft_done = done = 0.0
    for draft, verify in times:
        draft_done += draft
        done = max(draft_done, done) + verify
    return done


def batch_steps(problem: Json, batch: Sequence[int], l: int) -> int:  # noqa: E741
    """n of Eq. 8, or of the slowest task."""
    O = [outputs(problem)[k] for k in batch]  # noqa: E741
    if problem.get("rounds") == "slowest":
        return slowest_steps(O, Fraction(problem["acceptance_rate"] if l else 0), l)
    return steps(max(O), tokens_per_step(problem, l))


def batch_times(
    problem: Json,
    mechanism: str,
    batch: Sequence[int],
    l: int,  # noqa: E741
) -> list[tuple[float, float]]:
    """T^d and T^v of a batch at all of its steps."""
    padded = max(problem["input_tokens"][k] for k in batch)
    last = batch_steps(problem, batch, l)
    return [stages(problem, mechanism, len(batch), padded, l, n) for n in range(1, last + 1)]


def inference_seconds(mechanism: str, batches: list[list[tuple[float, float]]]) -> float:
    """T_inf (Eq. 22) of the stage times of batches: at every step those not finished yet."""
    return math.fsum(
        makespan(mechanism, [times[n] for times in batches if n < len(times)])
        for n in range(max(map(len, batches)))
    )


def upload_need(problem: Json, mechanism: str) -> list[float]:
    """Seconds that each task's upload takes with the whole band for itself (Eq. 15)."""
    bits = problem.get("embedding_bits_per_token")
    if bits is None:
        hidden = problem["verify"]["hidden"]
        if mechanism != "autoregressive":
            hidden += problem["draft"]["hidden"]
        bits = 16 * hidden
    B = problem["bandwidth_hz"]
    return [
        bits * tokens / (B * (math.log1p(snr) / math.log(2)))
        for tokens, snr in zip(problem["input_tokens"], problem["snr"], strict=True)
    ]


def communication_seconds(problem: Json, mechanism: str, share: list[float]) -> float:
    """T_com (Eq. 16)."""
    return max(need / w for need, w in zip(upload_need(problem, mechanism), share, strict=True))


def best_communication_seconds(problem: Json, mechanism: str) -> float:
    """T_com of the best shares (below Eq. 26)."""
    return math.fsum(upload_need(problem, mechanism))


def evaluate(problem: Json, plan: Json) -> Json:
    """The objective of a plan and its terms (Eq. 23)."""
    mechanism = mechanism_of(problem, plan)
    length = plan["speculation_length"]
    times = [batch_times(problem, mechanism, batch, length) for batch in plan["batches"]]
    inference = inference_seconds(mechanism, times)
    communication = communication_seconds(problem, mechanism, plan["bandwidth_share"])
    return {
        "objective": inference + communication,
        "inference_seconds": inference,
        "communication_seconds": communication,
    }


def exceeds(value: float, limit: float) -> bool:
    """Whether value <= limit is violated."""
    return value > limit + 1e-9 * max(abs(limit), abs(value))


def fits(problem: Json, mechanism: str, batch: list[int], O: list[int]) -> bool:  # noqa: E741
    """Whether a batch fits both memories (24b)."""
    tokens = max(problem["input_tokens"][k] for k in batch) + max(O[k] for k in batch)
    return holds(problem, mechanism, len(batch), tokens)


def holds(problem: Json, mechanism: str, b: int, tokens: float) -> bool:
    """Whether b tasks of that many tokens fit every model's memory (Eq. 9, 10)."""
    for which in ("verify",) if mechanism == "autoregressive" else ("draft", "verify"):
        limit = problem.get(f"{which}_memory_bytes")
        if limit is not None:
            needed = parameter_bytes(problem[which]) + b * kv_bytes(problem[which]) * tokens
            if exceeds(needed, limit):
                return False
    return True


def violations(problem: Json, plan: Json) -> set[str]:
    """Names of the constraints of problem (24) that a plan violates."""
    K = len(problem["input_tokens"])
    mechanism = mechanism_of(problem, plan)
    found = set()
    if sorted(k for batch in plan["batches"] for k in batch) != list(range(K)) or not all(
        plan["batches"]
    ):
        found.add("batches")
    elif not all(fits(problem, mechanism, batch, outputs(problem)) for batch in plan["batches"]):
        found.add("memory")
    lengths = (
        [0] if mechanism == "autoregressive" else range(1, problem["max_speculation_length"] + 1)
    )
    if plan["speculation_length"] not in lengths:
        found.add("speculation_length")
    share = plan["bandwidth_share"]
    if len(share) != K or min(share) <= 0 or exceeds(math.fsum(share), 1.0):
        found.add("bandwidth_share")
    return found


# ------------------------------------------------------------------ exhaustive search


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every way to split a list into non-empty sets."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for at, block in enumerate(smaller):
            yield [*smaller[:at], [first, *block], *smaller[at + 1 :]]


def brute_force(problem: Json) -> tuple[float, Json | None]:
    """The least objective over every partition, pipeline order, speculation length and mechanism,
    and a plan.

    Infinity and None if nothing fits.
    """
    K = len(problem["input_tokens"])
    assert K <= 5, "slow on purpose"
    named = problem.get("mechanism", "pipelined")
    best: float = math.inf
    plan: Json | None = None
    for mechanism in MECHANISMS if named == "any" else (named,):
        communication = best_communication_seconds(problem, mechanism)
        need = upload_need(problem, mechanism)
        share = [one / math.fsum(need) for one in need]
        lengths = (
            [0]
            if mechanism == "autoregressive"
            else range(1, problem["max_speculation_length"] + 1)
        )
        for l in lengths:  # noqa: E741
            table: dict[tuple[int, ...], list[tuple[float, float]]] = {}
            for blocks in partitions(list(range(K))):
                if not all(fits(problem, mechanism, block, outputs(problem)) for block in blocks):
                    continue
                for block in blocks:
                    if tuple(block) not in table:
                        table[tuple(block)] = batch_times(problem, mechanism, block, l)
                for order in permutations(blocks):
                    times = [table[tuple(block)] for block in order]
                    objective = inference_seconds(mechanism, times) + communication
                    if objective < best:
                        best = objective
                        plan = {
                            "speculation_length": l,
                            "batches": list(order),
                            "bandwidth_share": share,
                        }
                        if named == "any":
                            plan["mechanism"] = mechanism
    return best, plan


# ------------------------------------------------------------------ Algorithm 1


def algorithm_1(problem: Json) -> tuple[float, Json | None]:
    """Algorithm 1 as printed, its misprints corrected: the planned T_inf of the best l, and the
    plan.

    Every task counts as O_max here, whatever the problem says. Infinity and None if no boundary is
    feasible.
    """
    best: float = math.inf
    plan: Json | None = None
    need = upload_need(problem, "pipelined")
    for l in range(1, problem["max_speculation_length"] + 1):  # noqa: E741
        seconds, batches = algorithm_1_at(problem, l)
        if batches is not None and (plan is None or seconds < best * (1 - 1e-12)):
            best = seconds
            share = [one / math.fsum(need) for one in need]
            plan = {"speculation_length": l, "batches": batches, "bandwidth_share": share}
    return best, plan


def algorithm_1_at(problem: Json, l: int) -> tuple[float, list[list[int]] | None]:  # noqa: E741
    """Algorithm 1 for one speculation length: T_inf and the batches (task indices, in pipeline
    order).
    """
    K = len(problem["input_tokens"])
    task_list = sorted(range(K), key=lambda k: (problem["input_tokens"][k], k))
    longest = [longest_output(problem)] * K
    N = steps(longest[0], tokens_per_step(problem, l))
    Y0 = [[0.0] * (N + 1) for _ in range(K + 1)]
    Y1 = [[0.0] * (N + 1) for _ in range(K + 1)]
    for i in range(1, K + 1):
        Y0[i][0] = math.inf
    S = [0] * (K + 1)
    for i in range(1, K + 1):
        chosen: list[tuple[float, float]] = []
        for j in range(1, i + 1):
            if math.isinf(Y0[j - 1][0]):
                continue
            batch = task_list[j - 1 : i]
            if not fits(problem, "pipelined", batch, longest):
                continue
            padded = problem["input_tokens"][task_list[i - 1]]
            times = [
                stages(problem, "pipelined", len(batch), padded, l, n) for n in range(1, N + 1)
            ]
            temp = math.fsum(
                max(Y0[j - 1][n] + draft, Y1[j - 1][n]) + verify
                for n, (draft, verify) in enumerate(times, 1)
            )
            if temp <= Y0[i][0] * (1 + 1e-12):
                Y0[i][0] = temp
                S[i] = j
                chosen = times
        for n, (draft, verify) in enumerate(chosen, 1):
            Y0[i][n] = Y0[S[i] - 1][n] + draft
            Y1[i][n] = max(Y0[i][n], Y1[S[i] - 1][n]) + verify
    if math.isinf(Y0[K][0]):
        return math.inf, None
    batches = []
    end = K
    while end > 0:
        batches.append(sorted(task_list[S[end] - 1 : end]))
        end = S[end] - 1
    return Y0[K][0], batches[::-1]
