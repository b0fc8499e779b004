"""A second opinion on rebatched plans, arrivals, rates per task and samples: one step and one task at a time.

Works on JSON forms and imports nothing of specopt, as `naive`, whose models it shares. A task gains L(alpha_k, l) in a
step of speculation length l; all that depends on the step is worked out at that step, for every task alone.
"""

from __future__ import annotations

import math

from naive import (
    Json,
    draft_flops,
    exact_flops,
    exceeds,
    kv_bytes,
    mechanism_of,
    outputs,
    parameter_bytes,
    pass_seconds,
    steps,
    upload_need,
    verify_flops,
)


def gain(problem: Json, k: int, l: int) -> float:  # noqa: E741
    """L(alpha_k, l) as the sum that it is (Eq. 7)."""
    if l == 0:
        return 1.0
    rate = problem["acceptance_rate"]
    return math.fsum((rate[k] if isinstance(rate, list) else rate) ** i for i in range(l + 1))


def stages(
    problem: Json,
    b: int,
    reached: float,
    l: int,  # noqa: E741
    prefill: bool,
    unseen: float = 1.0,
) -> tuple[float, float]:
    """T^d and T^v of b tasks that have reached so many tokens: Eq. 13-14 at n = 1, else with (n - 1) L left out.

    The first draft pass takes in so many tokens that it has not seen.
    """
    n = 1 if prefill else 2
    verify = pass_seconds(problem["verify_runtime"], b, verify_flops(problem["verify"], reached, 0.0, l, n))
    draft = 0.0
    for i in range(1, l + 1):
        flops = draft_flops(problem["draft"], reached, 0.0, i, n)
        if i == 1 and not prefill and unseen > 1:
            flops = catch_up_flops(problem["draft"], unseen, reached)
        draft += pass_seconds(problem["draft_runtime"], b, flops)
    return draft, verify


def catch_up_flops(model: Json, new: float, total: float) -> float:
    """A pass over several new tokens, after others: Eq. 12 for each, all attending to the whole."""
    J, h1, h2 = model["layers"], model["hidden"], model["ffn"]
    if "cost" in model:
        return exact_flops(model, new, total, 1)
    return float(J * new * (8 * h1**2 + 4 * total * h1 + 4 * h1 * h2))


def ends(mechanism: str, times: list[tuple[float, float]]) -> list[float]:
    """When each batch is verified, since the step began (Eq. 20)."""
    drafted = done = 0.0
    found = []
    for draft, verify in times:
        drafted += draft
        done = max(drafted, done) + verify if mechanism == "pipelined" else done + draft + verify
        found.append(done)
    return found


def samples(problem: Json) -> list[list[int]]:
    """The output lengths that a plan is judged with, equally likely."""
    return list(problem["output_samples"]) if problem["output_lengths"] == "predicted" else [outputs(problem)]


def evaluate(problem: Json, plan: Json) -> Json:
    """Objective and terms, and whether memory suffices."""
    mechanism = mechanism_of(problem, plan)
    need = upload_need(problem, mechanism)
    K = len(need)
    upload = [n / w for n, w in zip(need, plan["bandwidth_share"], strict=True)]
    given = problem.get("arrival_seconds")
    arrival = [0.0] * K if given is None else [a - min(given) for a in given]
    ready = [max(upload)] * K if given is None else [a + u for a, u in zip(arrival, upload, strict=True)]
    objectives, communications, fits = [], [], True
    for Q in samples(problem):
        finish, within = (static if "batches" in plan else rebatched)(problem, plan, mechanism, Q, ready)
        fits = fits and within
        waits = [r - a for r, a in zip(ready, arrival, strict=True)]
        if problem.get("objective", "makespan") == "makespan":
            objectives.append(max(finish))
            communications.append(max(waits))
        else:
            objectives.append(sum(f - a for f, a in zip(finish, arrival, strict=True)) / K)
            communications.append(sum(waits) / K)
    objective, communication = sum(objectives) / len(objectives), sum(communications) / len(communications)
    return {
        "objective": objective,
        "communication_seconds": communication,
        "inference_seconds": objective - communication,
        "fits": fits,
        "band": all(
            not exceeds(
                sum(w for w, a, r in zip(plan["bandwidth_share"], arrival, ready, strict=True) if a <= t < r), 1
            )
            for t in arrival
        ),
    }


def held(share: list[float], arrival: list[float], ready: list[float], t: float) -> float:
    """The shares of the band that are held at a time."""
    return sum(w for w, a, r in zip(share, arrival, ready, strict=True) if a <= t < r)


def holds(problem: Json, mechanism: str, b: int, tokens: float) -> bool:
    """Whether b tasks of so many tokens fit every model's memory."""
    for which in ("verify",) if mechanism == "autoregressive" else ("draft", "verify"):
        limit = problem.get(f"{which}_memory_bytes")
        if limit is not None:
            needed = parameter_bytes(problem[which]) + b * kv_bytes(problem[which]) * tokens
            if needed > limit + 1e-9 * max(limit, needed):
                return False
    return True


def static(problem: Json, plan: Json, mechanism: str, Q: list[int], ready: list[float]) -> tuple[list[float], bool]:
    """When each task has its own output, and whether the batches fit."""
    I, l = problem["input_tokens"], plan["speculation_length"]  # noqa: E741
    own = [steps(Q[k], gain(problem, k, l)) for k in range(len(I))]
    last = [max(own[k] for k in batch) for batch in plan["batches"]]
    finish = [0.0] * len(I)
    clock = max(ready)
    for n in range(1, max(last) + 1):
        running = [m for m in range(len(last)) if n <= last[m]]
        times = []
        for m in running:
            batch = plan["batches"][m]
            reached = max(I[k] + (n - 1) * gain(problem, k, l) for k in batch)
            times.append(stages(problem, len(batch), reached, l, n == 1))
        done = ends(mechanism, times)
        for m, end in zip(running, done, strict=True):
            for k in plan["batches"][m]:
                if own[k] == n:
                    finish[k] = clock + end
        clock += done[-1]
    return finish, all(
        holds(problem, mechanism, len(batch), max(I[k] for k in batch) + max(Q[k] for k in batch))
        for batch in plan["batches"]
    )


def rebatched(problem: Json, plan: Json, mechanism: str, Q: list[int], ready: list[float]) -> tuple[list[float], bool]:
    """When each task has finished, and whether all that ran together fitted."""
    I, K = problem["input_tokens"], len(ready)  # noqa: E741
    served: list[dict[int, int]] = [{} for _ in range(K)]  # steps by speculation length
    lacks = [float(tokens) for tokens in I]  # tokens that the draft model has not seen
    finish: list[float | None] = [None] * K
    clock, n, fits = min(ready), 0, True

    def gained(k: int) -> float:
        return sum(count * gain(problem, k, l) for l, count in sorted(served[k].items()))  # noqa: E741

    while None in finish:
        active = {k for k in range(K) if finish[k] is None and ready[k] <= clock * (1 + 1e-12)}
        if not active:
            clock = min(ready[k] for k in range(K) if finish[k] is None)
            continue
        n += 1
        at = max(p for p, phase in enumerate(plan["phases"]) if phase["first_step"] <= n)
        phase = plan["phases"][at]
        length = phase.get("speculation_length", plan["speculation_length"])
        times, runs = [], []
        for m, batch in enumerate(phase["batches"]):
            l = length[m] if isinstance(length, list) else length  # noqa: E741
            members = [k for k in batch if k in active]
            for prefill in (True, False):
                run = [k for k in members if (not served[k]) == prefill]
                if not run:
                    continue
                reached, unseen = max(I[k] + gained(k) for k in run), max(lacks[k] for k in run)
                draft, verify = stages(problem, len(run), reached, l, prefill, unseen)
                if not prefill and at > 0 and n == phase["first_step"]:
                    together = max(len(set(run) & set(old)) for old in plan["phases"][at - 1]["batches"])
                    moving = problem.get("regroup_seconds", 0.0) * (len(run) - together)
                    draft, verify = draft + (moving if l else 0.0), verify + moving
                times.append((draft, verify))
                runs.append((run, l))
        done = ends(mechanism, times)
        for (run, l), end in zip(runs, done, strict=True):  # noqa: E741
            for k in run:
                served[k][l] = served[k].get(l, 0) + 1
                lacks[k] = 1.0 if l else lacks[k] + 1.0
                L = gain(problem, k, l)
                if gained(k) >= Q[k] - 1e-12 * max(L, Q[k]):
                    finish[k] = clock + end
            longest = max(I[k] + min(Q[k], gained(k)) for k in run)
            fits = fits and holds(problem, mechanism if l else "autoregressive", len(run), longest)
        clock += done[-1]
    return [f for f in finish if f is not None], fits
