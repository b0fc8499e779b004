"""Simulation of scheduling policies that serve tasks as they arrive, without knowledge of the
future.

The policy "online" plans every step with `StepChoice`. The policy "continuous" is first-come,
first-served continuous batching at one speculation length. It serves prompts one at a time, and
batches the other tasks in order of arrival, with as many tasks per batch as memory allows. If
stages overlap, it forms at least two batches. The policy "autoregressive" does the same without a
draft model. The policy "algorithm-1" takes all tasks that are ready and serves them until all are
complete. The static batches of these tasks are planned by Algorithm 1 with every output length set
to O_max. The policy then repeats this with the tasks that have become ready in the meantime.

Tasks gain the mean number of tokens of Eq. 7 per step and leave when their output is complete. All
policies use the same bandwidth shares as the method `rebatching`. The steps of the first three
policies form a plan, which is evaluated like any other plan. With static batches, ready tasks may
have to wait, which plans do not allow. The times of "algorithm-1" are therefore computed batch by
batch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import integer, one_of
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)
from specopt.models.continuous_serving.steps import ROUNDING
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import Floats, Ints
from specopt.models.serving_data import Mechanism
from specopt.solvers.continuous_serving.prepare import Prepared, prepare
from specopt.solvers.continuous_serving.rebatching import arrival_shares
from specopt.solvers.continuous_serving.step_choice import Learned, StepChoice, Task
from specopt.solvers.policy import Policy, refused
from specopt.solvers.serving_latency.lots import served_lot
from specopt.solvers.simulation import Estimate, Replications, Simulation

POLICIES = ("online", "continuous", "autoregressive", "algorithm-1")

# Batches of a step in order, each with its tasks and number of draft tokens.
Runs = list[tuple[list[int], int]]
# Batches of a step, and the time at which each is verified.
Served = tuple[Runs, list[float]]
# Maps the active tasks, and each task's tokens gained and number of steps, to a served step.
Rule = Callable[[list[int], Floats, Ints], Served]


@dataclass(frozen=True, kw_only=True, eq=False)
class ServiceSimulation(Simulation):
    """The result of simulating a policy. The samples of `latency_seconds` are the latencies of the
    individual tasks.

    Parameters
    ----------
    mechanism
        Mechanism with which the tasks were served.
    plan
        Plan that consists of the simulated steps, or None if no plan can represent them.
    drafting_share
        Fraction of all tokens that were produced in steps with drafts.
    """

    kind = ContinuousServingProblem.kind
    mechanism: Mechanism
    plan: ContinuousServingPlan | None = dataclasses.field(repr=False)
    drafting_share: float

    @property
    def facts(self) -> dict[str, str]:
        """Labelled facts that are displayed with the result: the mechanism, the fraction of tokens
        from steps with drafts, and the number of tasks.
        """
        return {
            "mechanism": self.mechanism,
            "drafting": f"{self.drafting_share:.0%} of the tokens",
            "quantiles": f"over {len(self.samples)} tasks",
        }


@dataclass(frozen=True)
class State:
    """The information about the tasks that a policy receives before each step.

    Parameters
    ----------
    tasks
        Indices of the tasks that have been uploaded and are not complete.
    input_tokens, gained_tokens, steps
        Prompt length, mean number of tokens gained so far (Eq. 7), and number of steps so far, for
        each of the tasks.
    mechanism
        Mechanism with which the tasks are served.
    """

    tasks: list[int]
    input_tokens: Floats
    gained_tokens: Floats
    steps: Ints
    mechanism: Mechanism


def play(
    problem: ContinuousServingProblem,
    policy: str | Policy,
    speculation_length: int = 3,
    seed: int = 0,
) -> ServiceSimulation:
    """Simulate a policy that serves the tasks of a problem.

    Parameters
    ----------
    problem
        Problem to simulate. The problem must not have predicted output lengths, and regrouping must
        have no cost.
    policy
        Name in `POLICIES`, or a `specopt.Policy`. A `specopt.Policy` receives a `State` and returns
        the batches of the next step in order, each as a pair of a list of tasks and a number of
        draft tokens. Tasks in their first step must not share a batch with other tasks.
    speculation_length
        Speculation length of the policy "continuous".
    seed
        Random seed that is passed to a user-defined policy.

    Raises
    ------
    InvalidInput
        If the policy or the speculation length is not allowed.
    Unsupported
        If the problem has regrouping costs or predicted output lengths, or does not allow the
        policy's mechanism.
    """
    runs = Replications(seed, 1, None)
    name = policy.name if isinstance(policy, Policy) else one_of("policy", policy, POLICIES)
    if problem.output_lengths == "predicted" or problem.regroup_seconds > 0.0:
        raise Unsupported("policies require given output lengths and regroup_seconds of 0")
    mechanism = "autoregressive" if name == "autoregressive" else problem.mechanisms[0]
    if mechanism not in problem.mechanisms or (name == "algorithm-1" and mechanism != "pipelined"):
        raise Unsupported(
            f"policy {name}: the problem does not allow the policy's mechanism, only"
            f" {problem.mechanism!r}"
        )
    served = problem
    if name in ("continuous", "algorithm-1"):  # these policies always draft
        served = dataclasses.replace(served, min_speculation_length=1)
    prepared = planned = prepare(served, mechanism)
    if name == "algorithm-1":  # this policy plans with O_max
        served = dataclasses.replace(served, output_lengths="conservative")
        planned = prepare(served, mechanism)
    misfit = planned.misfit()
    if misfit is not None:
        raise InvalidInput(f"problem: no plan exists, because {misfit}")
    length = integer("speculation_length", speculation_length, 1, problem.max_speculation_length)
    shares = arrival_shares(prepared)
    arrival, ready = problem.readiness_at(mechanism, shares)
    plan, drafting_share = None, 1.0
    if name == "algorithm-1":
        finish = _repeat_static(prepared, ready)
    else:
        if isinstance(policy, Policy):
            policy.start(problem, runs.seed)
            rule: Rule = _own(prepared, policy)
        else:
            rule = _online(prepared) if name == "online" else _first_come(prepared, length)
        finish, phases, drafting_share = _serve(prepared, rule, ready)
        plan = prepared.plan(phases, prepared.lengths[0], shares)
    latency = finish - arrival
    return runs.result(
        ServiceSimulation,
        name,
        {"latency_seconds": Estimate(float(latency.mean()), math.nan, latency)},
        mechanism=mechanism,
        plan=plan,
        drafting_share=drafting_share,
    )


# ---------------------------------------------------------------------------- step by step


def _serve(prepared: Prepared, rule: Rule, ready: Floats) -> tuple[Floats, list[Phase], float]:
    """Serve all tasks step by step, with the batches that the function `rule` chooses for each
    step.

    Return a tuple (finish, phases, share): the time at which each task finishes, the phases of the
    resulting plan, and the fraction of tokens from steps with drafts.
    """
    problem = prepared.problem
    outputs = problem.planned_output_tokens.astype(np.float64)
    tokens = np.stack([problem.tokens_per_step(n) for n in range(prepared.lengths[-1] + 1)])
    counts = np.zeros_like(tokens)  # number of steps, by speculation length and task
    finish = np.zeros(len(ready))
    unfinished = np.ones(len(ready), np.bool_)
    phases: list[Phase] = []
    clock, step = float(ready.min()), 0
    listed: Runs = []
    while unfinished.any():
        active = np.flatnonzero(unfinished & (ready <= clock * (1 + ROUNDING)))
        if not len(active):
            clock = float(ready[unfinished].min())
            continue
        step += 1
        gained = (counts * tokens).sum(axis=0)
        runs, ends = rule(active.tolist(), gained, counts.sum(axis=0))
        left = [([k for k in tasks if unfinished[k]], length) for tasks, length in listed]
        listed = [(sorted(tasks), length) for tasks, length in runs]
        if listed != [run for run in left if run[0]]:
            others = sorted(set(range(len(ready))).difference(*(tasks for tasks, _ in listed)))
            every = listed + [([k], prepared.lengths[0]) for k in others]
            lists, lengths = zip(*every, strict=True)
            batches = tuple(map(tuple, lists))
            phases.append(Phase(first_step=step, batches=batches, speculation_length=lengths))
        for (tasks, length), end in zip(runs, ends, strict=True):
            counts[length, tasks] += 1.0
            members = np.array(tasks)
            target = outputs[members] - ROUNDING * np.maximum(
                tokens[length, members], outputs[members]
            )
            done = members[(counts[:, members] * tokens[:, members]).sum(axis=0) >= target]
            finish[done] = clock + end
            unfinished[done] = False
        clock += ends[-1]
    by_length = (counts * tokens).sum(axis=1)
    return finish, phases, float(by_length[1:].sum() / by_length.sum())


def _online(prepared: Prepared) -> Rule:
    """Return a function that makes the decisions of the policy "online" at each step. It estimates
    output lengths from the tasks that have finished.
    """
    problem, choice = prepared.problem, StepChoice(prepared.problem, prepared.mechanism)
    rates = problem.rates.tolist()
    tasks: dict[int, Task] = {}  # in order of arrival
    lengths: dict[int, int] = {}  # draft tokens in the previous step, by task
    learned, before = Learned(), np.zeros(prepared.tasks)

    def serve(active: list[int], gained: Floats, steps: Ints) -> Served:
        nonlocal lengths, learned, before
        now = set(active)
        for k, length in lengths.items():
            tasks[k] = tasks[k].after(float(gained[k] - before[k]), length)
            if k not in now:
                learned = learned.finished(tasks.pop(k).gained)
        for k in active:
            if k not in tasks:
                tokens = float(problem.input_tokens[k])
                tasks[k] = Task(tokens, tokens, rates[k])
                learned = learned._replace(joined=learned.joined + 1)
        before, keys = gained, list(tasks)
        seconds, batches = choice.choose(tasks.values(), learned)
        learned = learned._replace(seconds=learned.seconds + seconds)
        runs = [([keys[place] for place in places], length) for places, length, _ in batches]
        lengths = {k: length for members, length in runs for k in members}
        return runs, [end for *_, end in batches]

    return serve


def _first_come(prepared: Prepared, length: int) -> Rule:
    """Return a function that decides each step by first-come, first-served continuous batching at
    one speculation length.

    Each prompt is served alone. The other tasks are batched in order of arrival, with batches as
    large as memory allows. If stages overlap, there are at least two batches.
    """
    problem = prepared.problem
    if prepared.mechanism == "autoregressive":
        length = 0
    tokens = problem.tokens_per_step(length)

    def serve(active: list[int], gained: Floats, steps: Ints) -> Served:
        reached = problem.input_tokens + gained
        rest = [k for k in active if steps[k] > 0]
        most = -(-len(rest) // 2) if prepared.overlap else len(rest)
        batches: list[list[int]] = []
        for k in rest:
            grown = [*batches[-1], k] if batches else [k]
            longest = float((reached + tokens)[grown].max())
            if 1 < len(grown) <= most and prepared.fits(len(grown), longest, 0.0):
                batches[-1] = grown
            else:
                batches.append([k])
        batches += [[k] for k in active if steps[k] == 0]
        runs = [(batch, length) for batch in batches]
        return runs, prepared.step_ends(runs, gained, steps == 0)

    return serve


def _own(prepared: Prepared, policy: Policy) -> Rule:
    """Return a function that asks a user-defined policy for the batches of each step and validates
    them.
    """
    problem, lengths = prepared.problem, prepared.served_lengths

    def serve(active: list[int], gained: Floats, steps: Ints) -> Served:
        inputs = problem.input_tokens[active].astype(np.float64)
        decision = policy.decide(
            State(active, inputs, gained[active], steps[active], prepared.mechanism)
        )
        try:
            runs = [([int(task) for task in tasks], int(length)) for tasks, length in decision]
        except (TypeError, ValueError):
            runs = []
        if sorted(task for tasks, _ in runs for task in tasks) != sorted(active):
            expected = (
                f"batches of tasks with their draft tokens, with each task of {active} in one batch"
            )
            raise refused(policy, expected, decision)
        for run in runs:
            tasks, length = run
            if length not in lengths or len(set(steps[tasks] > 0)) != 1:
                expected = (
                    f"{lengths[0]} to {lengths[-1]} draft tokens, and no mix of first and later"
                    " steps"
                )
                raise refused(policy, expected, run)
            reached = problem.input_tokens + gained + problem.tokens_per_step(length)
            if not prepared.fits(len(tasks), float(reached[tasks].max()), 0.0):
                raise refused(policy, "batches that fit into memory", run)
        return runs, prepared.step_ends(runs, gained, steps == 0)

    return serve


# ---------------------------------------------------------- static batches, one lot at a time


def _repeat_static(prepared: Prepared, ready: Floats) -> Floats:
    """Serve tasks in successive lots, each of which completes before the next lot begins. Return
    the time at which each task finishes.

    A lot contains all tasks that are ready but have not been served.
    """
    problem = prepared.problem
    finish, waiting = np.zeros(len(ready)), np.ones(len(ready), np.bool_)
    clock = float(ready.min())
    while waiting.any():
        chosen = np.flatnonzero(waiting & (ready <= clock * (1 + ROUNDING)))
        if not len(chosen):
            clock = float(ready[waiting].min())
            continue
        seconds, ends = served_lot(problem, chosen)
        finish[chosen] = clock + ends
        waiting[chosen] = False
        clock += seconds
    return finish
