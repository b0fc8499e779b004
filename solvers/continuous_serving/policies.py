"""Policies that serve tasks as they arrive, played to the end: none knows what is to come.

"online" plans every step anew (`StepChoice`). "continuous" is first-come continuous batching at one
speculation length: prompts one by one, then batches by arrival as large as memory allows, one for
each stage if stages overlap. "autoregressive" is the same without a draft model. "algorithm-1"
serves what has arrived to the end, in static batches planned by Algorithm 1 with O_max, and
repeats. Tasks gain what Eq. 7 says on average and leave when they have their output. All get the
same bandwidth shares, those that `rebatching` gives.

What the first three did is a plan, so the judge tells its latency; static batches let ready tasks
wait, as no plan may, and are timed by the judge batch by batch.
"""

from __future__ import annotations

import dataclasses
import time
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
from specopt.models.serving_stages import Mechanism
from specopt.solvers.continuous_serving.prepare import Prepared, prepare
from specopt.solvers.continuous_serving.rebatching import arrival_shares
from specopt.solvers.continuous_serving.step_choice import Learned, StepChoice, Task
from specopt.solvers.policy import Policy, refused
from specopt.solvers.serving_latency.lots import served_lot
from specopt.solvers.simulation import Estimate, Simulation

POLICIES = ("online", "continuous", "autoregressive", "algorithm-1")

Served = list[
    tuple[list[int], int, float]
]  # batches of a step in order: tasks, draft tokens, when verified
Rule = Callable[
    [list[int], Floats, Ints], Served
]  # given the tasks at hand, what each has gained, and its steps


@dataclass(frozen=True, kw_only=True, eq=False)
class ServiceSimulation(Simulation):
    """What a policy made of the tasks; the samples of `latency_seconds` are the tasks'.

    Parameters
    ----------
    mechanism
        How tasks were served.
    plan
        What was done, for the judge; None where no plan says it.
    drafting_share
        Share of the tokens that came of steps with drafts.
    """

    kind = ContinuousServingProblem.kind
    mechanism: Mechanism
    plan: ContinuousServingPlan | None = dataclasses.field(repr=False)
    drafting_share: float

    @property
    def facts(self) -> dict[str, str]:
        """How tasks were served, and what the quantiles are of."""
        return {
            "mechanism": self.mechanism,
            "drafting": f"{self.drafting_share:.0%} of the tokens",
            "quantiles": f"over {len(self.samples)} tasks",
        }


@dataclass(frozen=True)
class State:
    """What a policy sees before a step.

    Parameters
    ----------
    tasks
        Those at hand, by index.
    input_tokens, gained_tokens, steps
        Of each of them: the prompt, tokens so far on average (Eq. 7), and steps that it had.
    mechanism
        How the problem is served.
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
    """Serve the tasks of a problem by a policy.

    Parameters
    ----------
    problem
        Without costs of regrouping, output lengths given.
    policy
        One of `POLICIES`, or a `specopt.Policy`: it is given a `State`, and returns the batches of
        the next step in order, each as a list of tasks and its draft tokens. A task's first step is
        in a batch of such tasks.
    speculation_length
        Of "continuous".
    seed
        For a policy of one's own.

    Raises
    ------
    InvalidInput
        If the policy or the length is not one of those allowed.
    Unsupported
        If the problem is served in another way, or does not allow the policy's mechanism.
    """
    started = time.perf_counter()
    name = policy.name if isinstance(policy, Policy) else one_of("policy", policy, POLICIES)
    if problem.output_lengths == "predicted" or problem.regroup_seconds > 0.0:
        raise Unsupported(
            "policies serve tasks of given output lengths, whose regrouping costs nothing"
        )
    mechanism = "autoregressive" if name == "autoregressive" else problem.mechanisms[0]
    if mechanism not in problem.mechanisms or (name == "algorithm-1" and mechanism != "pipelined"):
        raise Unsupported(
            f"policy {name}: expected a problem that allows its mechanism, got"
            f" {problem.mechanism!r}"
        )
    prepared = prepare(problem, mechanism)
    if name in ("continuous", "algorithm-1"):  # which draft for everyone
        prepared = prepare(dataclasses.replace(problem, min_speculation_length=1), mechanism)
    planned = prepared
    if name == "algorithm-1":  # which plans with O_max
        planned = prepare(
            dataclasses.replace(prepared.problem, output_lengths="conservative"), mechanism
        )
    misfit = planned.misfit()
    if misfit is not None:
        raise InvalidInput(f"problem: expected one with a plan, but {misfit}")
    length = integer("speculation_length", speculation_length, 1, problem.max_speculation_length)
    shares = arrival_shares(prepared)
    arrival, ready = problem.readiness_at(mechanism, shares)
    if name == "algorithm-1":
        finish, plan, share = _repeat_static(prepared, ready), None, 1.0
    else:
        if isinstance(policy, Policy):
            policy.start(problem, seed)
            rule: Rule = _own(prepared, policy)
        else:
            rule = _Online(prepared) if name == "online" else _first_come(prepared, length)
        finish, phases, share = _serve(problem, prepared, rule, ready)
        plan = prepared.plan(phases, prepared.lengths[0], shares)
    latency = finish - arrival
    return ServiceSimulation(
        policy=name,
        replications=1,
        seed=seed,
        estimates={"latency_seconds": Estimate(float(latency.mean()), float("nan"), latency)},
        seconds=time.perf_counter() - started,
        mechanism=mechanism,
        plan=plan,
        drafting_share=share,
    )


# ---------------------------------------------------------------------------- step by step


def _serve(
    problem: ContinuousServingProblem,
    prepared: Prepared,
    rule: Rule,
    ready: Floats,
) -> tuple[Floats, list[Phase], float]:
    """Return when each task has finished, what was done, and which share of the tokens drafts
    gave.
    """
    outputs = problem.planned_output_tokens.astype(np.float64)
    tokens = np.stack(
        [problem.tokens_per_step(length) for length in range(prepared.lengths[-1] + 1)]
    )
    counts = np.zeros_like(tokens)  # steps by speculation length and task
    finish = np.zeros(len(ready))
    unfinished = np.ones(len(ready), np.bool_)
    phases: list[Phase] = []
    clock, step = float(ready.min()), 0
    listed: list[tuple[list[int], int]] = []
    while unfinished.any():
        active = np.flatnonzero(unfinished & (ready <= clock * (1 + ROUNDING)))
        if not len(active):
            clock = float(ready[unfinished].min())
            continue
        step += 1
        gained = (counts * tokens).sum(axis=0)
        batches = rule(active.tolist(), gained, counts.sum(axis=0))
        shape = [(sorted(tasks), length) for tasks, length, _ in batches]
        if shape != [
            (left, length)
            for tasks, length in listed
            if (left := [k for k in tasks if unfinished[k]])
        ]:
            others = sorted(set(range(len(ready))).difference(*(tasks for tasks, _ in shape)))
            lists = [tuple(tasks) for tasks, _ in shape] + [(k,) for k in others]
            lengths = [length for _, length in shape] + [prepared.lengths[0]] * len(others)
            phases.append(
                Phase(first_step=step, batches=tuple(lists), speculation_length=tuple(lengths))
            )
        listed = shape
        for tasks, length, end in batches:
            counts[length, tasks] += 1.0
            members = np.array(tasks)
            target = outputs[members] - ROUNDING * np.maximum(
                tokens[length, members], outputs[members]
            )
            done = members[(counts[:, members] * tokens[:, members]).sum(axis=0) >= target]
            finish[done] = clock + end
            unfinished[done] = False
        clock += batches[-1][2]
    by_length = (counts * tokens).sum(axis=1)
    return finish, phases, float(by_length[1:].sum() / by_length.sum())


class _Online:
    """The choice of the online scheduler, which learns what happened."""

    def __init__(self, prepared: Prepared) -> None:
        self.problem = prepared.problem
        self.choice = StepChoice(prepared.problem, prepared.mechanism)
        self.rates = self.problem.rates.tolist()
        self.tasks: dict[int, Task] = {}  # in the order in which they came
        self.learned = Learned()
        self.lengths: dict[int, int] = {}  # drafted in the step before
        self.gained = np.zeros(prepared.tasks)

    def __call__(self, active: list[int], gained: Floats, steps: Ints) -> Served:
        now = set(active)
        for k, length in self.lengths.items():
            self.tasks[k] = self.tasks[k].after(float(gained[k] - self.gained[k]), length)
            if k not in now:
                self.learned = self.learned.finished(self.tasks.pop(k).gained)
        for k in active:
            if k not in self.tasks:
                tokens = float(self.problem.input_tokens[k])
                self.tasks[k] = Task(tokens, tokens, self.rates[k])
                self.learned = self.learned._replace(joined=self.learned.joined + 1)
        self.gained, keys = gained, list(self.tasks)
        seconds, batches = self.choice.choose(self.tasks.values(), self.learned)
        self.learned = self.learned._replace(seconds=self.learned.seconds + seconds)
        served = [
            ([keys[place] for place in places], length, end) for places, length, end in batches
        ]
        self.lengths = {k: length for tasks, length, _ in served for k in tasks}
        return served


def _first_come(prepared: Prepared, length: int) -> Rule:
    """Prompts alone, batches by arrival, as large as memory allows, one for each stage; one
    speculation length.
    """
    problem = prepared.problem
    if prepared.mechanism == "autoregressive":
        length = 0
    tokens = problem.tokens_per_step(length)

    def serve(active: list[int], gained: Floats, steps: Ints) -> Served:
        reached = problem.input_tokens + gained
        rest = [k for k in active if steps[k] > 0]
        most = -(-len(rest) // 2) if prepared.overlap else len(rest)
        runs: list[list[int]] = []
        for k in rest:
            grown = [*runs[-1], k] if runs else [k]
            if 1 < len(grown) <= most and prepared.fits(
                len(grown), float((reached + tokens)[grown].max()), 0.0
            ):
                runs[-1] = grown
            else:
                runs.append([k])
        runs += [[k] for k in active if steps[k] == 0]
        return _timed(prepared, [(run, length) for run in runs], gained, steps)

    return serve


def _timed(
    prepared: Prepared, batches: list[tuple[list[int], int]], gained: Floats, steps: Ints
) -> Served:
    """Return the batches of a step with when each is verified (Eq. 20)."""
    problem = prepared.problem
    reached = problem.input_tokens + gained
    shapes = (
        (len(run), reached[run].max(keepdims=True), length, steps[run[0]] == 0)
        for run, length in batches
    )
    times = (problem.stage_seconds(*shape) for shape in shapes)
    ends = prepared.completed((float(draft[0]), float(verify[0])) for draft, verify in times)
    return [(run, length, end) for (run, length), end in zip(batches, ends, strict=True)]


def _own(prepared: Prepared, policy: Policy) -> Rule:
    """Return the rule of a policy of one's own, its decisions checked."""
    problem, lengths = prepared.problem, prepared.served_lengths

    def serve(active: list[int], gained: Floats, steps: Ints) -> Served:
        inputs = problem.input_tokens[active].astype(np.float64)
        decision = policy.decide(
            State(active, inputs, gained[active], steps[active], prepared.mechanism)
        )
        try:
            batches = [([int(task) for task in tasks], int(length)) for tasks, length in decision]
        except (TypeError, ValueError):
            batches = []
        if sorted(task for tasks, _ in batches for task in tasks) != sorted(active):
            raise refused(
                policy,
                f"batches of tasks and their draft tokens, each task of {active} once",
                decision,
            )
        for tasks, length in batches:
            tokens = problem.tokens_per_step(length)[tasks] if length in lengths else None
            mixed = len({bool(steps[task] > 0) for task in tasks}) > 1
            if tokens is None or mixed or not tasks:
                raise refused(
                    policy,
                    f"{lengths[0]} to {lengths[-1]} draft tokens, first steps apart",
                    (tasks, length),
                )
            if not prepared.fits(
                len(tasks), float((problem.input_tokens[tasks] + gained[tasks] + tokens).max()), 0.0
            ):
                raise refused(policy, "batches that fit the memory", (tasks, length))
        return _timed(prepared, batches, gained, steps)

    return serve


# ---------------------------------------------------------- static batches, one lot after the other


def _repeat_static(prepared: Prepared, ready: Floats) -> Floats:
    """Return when each task has finished if all that have arrived are served to the end before
    others begin.
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
