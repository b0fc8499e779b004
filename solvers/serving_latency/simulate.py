"""Simulation of a plan with random acceptances, which yields the distribution of its latency. The
pipeline is replayed many times, token by token.

The objective is a mean-field model, in which every task of a batch gains L tokens per step (Eq. 7)
and needs ceil(O / L) steps (Eq. 8). In the replay, each draft token is accepted independently with
probability alpha, up to the first rejection, and the server adds one token of its own. The replay
assumes:

* Each task is served until it reaches its own output length O_k, even if the problem uses
  conservative output lengths. Excess tokens are discarded.
* A batch leaves the pipeline when all of its tasks have finished (Eq. 21 with the simulated steps).
  Until then, the batch size includes all of its tasks, as in the model. With `drop_finished`, it
  includes only the unfinished tasks.
* Instead of (n - 1) L, Eq. 13-14 use the longest output so far among the tasks that are included
  in the batch size. Prompts stay padded to the longest prompt of the batch.
* Stage times, the recursion of Eq. 20 and communication times are otherwise as in the model.

A batch ends with its slowest task, and the mean of a maximum is above the maximum of means. In the
setting of paper 1, the model is accurate to 0.5 % if output lengths within a batch differ. It is
1-3 % too low if all lengths are equal.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import boolean
from specopt.models.errors import Unsupported
from specopt.models.fields import Floats
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.kernels.random import GOLDEN, mixed, uniform
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_method import GIVEN, ONE_RATE
from specopt.solvers.serving_replay import ReplaySimulation, judged_feasible, played, replay
from specopt.solvers.simulation import Replications, Tell, random_key

_TASKS_PER_CALL = 200_000  # over all replications that are simulated together


@dataclass(frozen=True, kw_only=True, eq=False)
class LatencySimulation(ReplaySimulation):
    """The result of replaying a plan: the distribution of its latency, together with the latency
    that the model predicts.

    Parameters
    ----------
    problem_sha256
        Hash of the problem whose plan was replayed.
    drop_finished
        Whether, in the simulation, tasks left their batches as soon as they finished.
    known_model, known_ratio
        Latency in seconds that the model predicts from the true output length of every task in Eq.
        8, and the ratio of the simulated mean to that latency. The ratio shows the error of the
        mean-field approximation alone.
    model_steps, known_model_steps
        Number of decoding steps in the model, and in the model with the true output lengths.
    batch_mean_steps, batch_known_model_steps
        Number of decoding steps of each batch of the plan. The first field is the mean in the
        simulation, and the second is the number in the model with the true output lengths.
    """

    kind = ServingLatencyProblem.kind
    model: float
    problem_sha256: str
    drop_finished: bool
    known_model: float
    known_ratio: float
    model_steps: int
    known_model_steps: int
    batch_mean_steps: tuple[float, ...]
    batch_known_model_steps: tuple[int, ...]

    @property
    def facts(self) -> dict[str, str]:
        """Labelled facts that are displayed with the result: the mechanism, the communication time,
        the number of steps in the model, and details that depend on the problem and the options.
        """
        facts = super().facts | {"model steps": str(self.model_steps)}
        if self.known_model != self.model:
            facts["known lengths"] = (
                f"{self.known_model:.6g}, mean / model {self.known_ratio:.4f}, with each task's own"
                " output length"
            )
        if self.drop_finished:
            facts["batches"] = "finished tasks leave at once; in the model they stay"
        return facts


def simulate(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    *,
    seed: int = 0,
    replications: int = 1000,
    callback: Tell | None = None,
    drop_finished: bool = False,
) -> LatencySimulation:
    """Replay a plan with random acceptances.

    Parameters
    ----------
    problem, plan
        The problem, and a feasible plan for it.
    seed
        Random seed. With the same seed, every task uses the same random numbers under every plan,
        which allows paired comparisons of plans.
    replications
        Number of replications, at least 2.
    callback
        Function that is called periodically with the number of completed replications and their
        mean latency in seconds.
    drop_finished
        Whether a finished task leaves its batch immediately. Otherwise, the batch keeps its size
        until all of its tasks have finished.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or if the plan violates the problem's constraints.
    Unsupported
        If the problem has predicted output lengths or a separate acceptance rate for each task.
    """
    runs = Replications(seed, replications, callback, minimum=2)
    drop = boolean("drop_finished", drop_finished)
    model = judged_feasible(problem, plan)
    clash = ONE_RATE.clash(None, problem) or GIVEN.clash(None, problem)
    if clash:
        raise Unsupported(
            f"simulate requires given output lengths and one acceptance rate, got {clash}"
        )
    mechanism = problem.mechanism_of(plan)
    known = dataclasses.replace(problem, output_lengths="known").evaluate(plan).objective
    prepared = prepare(problem, mechanism)
    batch_steps = np.zeros(len(plan.batches), np.int64)
    length, batches = plan.speculation_length, [list(batch) for batch in plan.batches]
    padded = problem.input_tokens.copy()
    for batch in batches:
        padded[batch] = padded[batch].max()
    tasks = np.arange(1, problem.tasks + 1, dtype=np.uint64) * GOLDEN

    def play_some(part: slice) -> tuple[Floats, Floats]:
        numbers = np.arange(part.start + 1, part.stop + 1, dtype=np.uint64)
        places = mixed(random_key(runs.seed) + numbers * GOLDEN)[:, None] + tasks
        streams = mixed(places)

        def draw(step: int) -> Floats:
            streams[:] += GOLDEN
            return np.asarray(uniform(streams))

        runs_of = [(batch, length) for batch in batches]
        finish, steps = played(
            prepared, len(numbers), lambda step: runs_of, draw, padded, stays=not drop
        )
        for number, batch in enumerate(batches):
            batch_steps[number] += int(steps[:, batch].max(axis=1).sum())
        return finish.max(axis=1), steps.max(axis=1)

    communication = model.terms["communication_seconds"]
    found = replay(runs, play_some, communication, max(1, _TASKS_PER_CALL // problem.tasks))
    planned, own = (
        tuple(prepared.batch_steps(outputs[list(batch)], length) for batch in plan.batches)
        for outputs in (problem.planned_output_tokens, problem.output_tokens)
    )
    return runs.result(
        LatencySimulation,
        "plan",
        found,
        model=model.objective,
        problem_sha256=problem.sha256,
        mechanism=mechanism,
        drop_finished=drop,
        communication_seconds=communication,
        known_model=known,
        known_ratio=found["latency_seconds"].mean / known,
        model_steps=max(planned),
        known_model_steps=max(own),
        batch_mean_steps=tuple((batch_steps / runs.count).tolist()),
        batch_known_model_steps=own,
    )
