"""A second opinion on continuous serving, and on fixed batches with rates per task and samples:
task by task.

Works on JSON forms and imports nothing of specopt, as `serving_latency`, whose models it shares. It
plays plans, and tries all. A task gains L(alpha_k, l) in a step of speculation length l; all that
depends on the step is worked out at that step, for every task alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from oracles.serving_latency import (
    Json,
    draft_flops,
    exact_flops,
    exceeds,
    fits,
    holds,
    mechanism_of,
    outputs,
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
    """T^d and T^v of b tasks that have reached that many tokens: Eq. 13-14 at n = 1, else with (n -
    1) L left out.

    The first draft pass takes in the tokens that it has not seen.
    """
    n = 1 if prefill else 2
    verify = pass_seconds(
        problem["verify_runtime"], b, verify_flops(problem["verify"], reached, 0.0, l, n)
    )
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
    return (
        list(problem["output_samples"])
        if problem["output_lengths"] == "predicted"
        else [outputs(problem)]
    )


def starts(problem: Json, mechanism: str, share: list[float]) -> tuple[list[float], list[float]]:
    """When each task arrives, and when it is ready."""
    upload = [need / w for need, w in zip(upload_need(problem, mechanism), share, strict=True)]
    given = problem.get("arrival_seconds")
    if given is None:
        return [0.0] * len(share), [max(upload)] * len(share)
    arrival = [a - min(given) for a in given]
    return arrival, [a + u for a, u in zip(arrival, upload, strict=True)]


def evaluate(problem: Json, plan: Json) -> Json:
    """Objective and terms, and whether memory suffices."""
    mechanism = mechanism_of(problem, plan)
    arrival, ready = starts(problem, mechanism, plan["bandwidth_share"])
    K = len(ready)
    objectives, communications, fitted = [], [], True
    for Q in samples(problem):
        finish, within = (fixed if "batches" in plan else in_phases)(
            problem, plan, mechanism, Q, ready
        )
        fitted = fitted and within
        waits = [r - a for r, a in zip(ready, arrival, strict=True)]
        if problem.get("objective", "makespan") == "makespan":
            objectives.append(max(finish))
            communications.append(max(waits))
        else:
            objectives.append(sum(f - a for f, a in zip(finish, arrival, strict=True)) / K)
            communications.append(sum(waits) / K)
    objective, communication = (
        sum(objectives) / len(objectives),
        sum(communications) / len(communications),
    )
    return {
        "objective": objective,
        "communication_seconds": communication,
        "inference_seconds": objective - communication,
        "fits": fitted,
        "band": all(
            not exceeds(held(plan["bandwidth_share"], arrival, ready, t), 1) for t in arrival
        ),
    }


def held(share: list[float], arrival: list[float], ready: list[float], t: float) -> float:
    """The shares of the band that are held at a time."""
    return sum(w for w, a, r in zip(share, arrival, ready, strict=True) if a <= t < r)


def fixed(
    problem: Json, plan: Json, mechanism: str, Q: list[int], ready: list[float]
) -> tuple[list[float], bool]:
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
    return finish, all(fits(problem, mechanism, batch, Q) for batch in plan["batches"])


@dataclass
class World:
    """What has become of the tasks, given the tokens each needs and when it is ready."""

    problem: Json
    mechanism: str
    Q: list[int]
    ready: list[float]
    clock: float
    served: list[dict[int, int]]  # steps by speculation length
    lacks: list[float]  # tokens that the draft model has not seen
    finish: list[float | None]
    fits: bool = True

    @staticmethod
    def before(problem: Json, mechanism: str, Q: list[int], ready: list[float]) -> World:
        """Nothing has been served yet."""
        K, lacks = len(ready), [float(tokens) for tokens in problem["input_tokens"]]
        return World(
            problem, mechanism, Q, ready, min(ready), [{} for _ in range(K)], lacks, [None] * K
        )

    def gained(self, k: int) -> float:
        """The tokens that a task has."""
        return sum(count * gain(self.problem, k, l) for l, count in sorted(self.served[k].items()))  # noqa: E741

    def active(self) -> set[int]:
        """The tasks of the next step; the clock goes on to the next that is ready where none is."""
        left = {k for k in range(len(self.finish)) if self.finish[k] is None}
        if left and min(self.ready[k] for k in left) > self.clock * (1 + 1e-12):
            self.clock = min(self.ready[k] for k in left)
        return {k for k in left if self.ready[k] <= self.clock * (1 + 1e-12)}

    def after(
        self, batches: list[list[int]], lengths: list[int], old: list[list[int]] | None
    ) -> World:
        """What one step of these batches makes of it; `old` are those that they replace, if any."""
        new = replace(
            self,
            served=[dict(one) for one in self.served],
            lacks=[*self.lacks],
            finish=[*self.finish],
        )
        active, problem, I = self.active(), self.problem, self.problem["input_tokens"]  # noqa: E741
        times, runs = [], []
        for batch, l in zip(batches, lengths, strict=True):  # noqa: E741
            for prefill in (True, False):
                run = [k for k in batch if k in active and (not self.served[k]) == prefill]
                if not run:
                    continue
                reached, unseen = (
                    max(I[k] + self.gained(k) for k in run),
                    max(self.lacks[k] for k in run),
                )
                draft, verify = stages(problem, len(run), reached, l, prefill, unseen)
                if not prefill and old is not None:
                    together = max(len(set(run) & set(other)) for other in old)
                    moving = problem.get("regroup_seconds", 0.0) * (len(run) - together)
                    draft, verify = draft + (moving if l else 0.0), verify + moving
                times.append((draft, verify))
                runs.append((run, l))
        done = ends(self.mechanism, times)
        for (run, l), end in zip(runs, done, strict=True):  # noqa: E741
            for k in run:
                new.served[k][l] = new.served[k].get(l, 0) + 1
                new.lacks[k] = 1.0 if l else new.lacks[k] + 1.0
                L = gain(problem, k, l)
                if new.gained(k) >= self.Q[k] - 1e-12 * max(L, self.Q[k]):
                    new.finish[k] = self.clock + end
            longest = max(I[k] + min(self.Q[k], new.gained(k)) for k in run)
            new.fits = new.fits and holds(
                problem, self.mechanism if l else "autoregressive", len(run), longest
            )
        new.clock = self.clock + (done[-1] if done else 0.0)
        return new


def in_phases(
    problem: Json, plan: Json, mechanism: str, Q: list[int], ready: list[float]
) -> tuple[list[float], bool]:
    """When each task has finished, and whether all that ran together fitted."""
    world, phases, n = World.before(problem, mechanism, Q, ready), plan["phases"], 0
    while world.active():
        n += 1
        at = max(p for p, phase in enumerate(phases) if phase["first_step"] <= n)
        length = phases[at].get("speculation_length", plan["speculation_length"])
        batches = phases[at]["batches"]
        lengths = length if isinstance(length, list) else [length] * len(batches)
        begins = at > 0 and n == phases[at]["first_step"]
        world = world.after(batches, lengths, phases[at - 1]["batches"] if begins else None)
    return [f for f in world.finish if f is not None], world.fits


def ordered_partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every way to put items in batches, and the batches in order."""
    if not items:
        yield []
    for size in range(1, len(items) + 1):
        for batch in itertools.combinations(items, size):
            for rest in ordered_partitions([k for k in items if k not in batch]):
                yield [[*batch], *rest]


def least(problem: Json, mechanism: str, share: list[float]) -> float:
    """The least objective of all plans under a mechanism with these shares; infinite if none
    fits.
    """
    arrival, ready = starts(problem, mechanism, share)
    drafting = range(
        problem.get("min_speculation_length", 1), problem.get("max_speculation_length", 0) + 1
    )
    lengths = [0] if mechanism == "autoregressive" else [*drafting]

    def value(world: World) -> float:
        finish = [f for f in world.finish if f is not None]
        if problem.get("objective", "makespan") == "makespan":
            return max(finish)
        return sum(f - a for f, a in zip(finish, arrival, strict=True)) / len(finish)

    def rest(worlds: list[World], before: list[list[int]] | None) -> float:
        active = sorted(set().union(*(world.active() for world in worlds)))
        if not active:
            return sum(map(value, worlds)) / len(worlds)
        found = math.inf
        for batches in ordered_partitions(active):
            for chosen in itertools.product(lengths, repeat=len(batches)):
                after = [world.after(batches, [*chosen], before) for world in worlds]
                if all(world.fits for world in after):
                    found = min(found, rest(after, batches))
        return found

    return rest([World.before(problem, mechanism, Q, ready) for Q in samples(problem)], None)
