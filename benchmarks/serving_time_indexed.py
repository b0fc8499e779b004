"""A time-indexed linear program for serving as tasks arrive: its distance from the best policy, and
its cost.

``python -P benchmarks/serving_time_indexed.py [TASKS [SECONDS [RATE]]]``: number of tasks, length
of an interval, and requests per second. Tasks may end in parts. The program does not let runs of a
step overlap, so it is not a bound on plans, but its value is at least that of the same program with
overlap.
"""

from __future__ import annotations

import dataclasses
import sys
import time

import numpy as np
import scipy.optimize
import scipy.sparse

import specopt
from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.solvers.continuous_serving.prepare import prepare
from specopt.solvers.serving_prices import operations

LENGTHS = np.array([0, 1, 2, 3, 4, 5, 6, 8, 10])
BITS_PER_TOKEN = 32.0  # as in `serving_online`
LONGEST = 10.0  # maximum seconds of a task in the system


class Program:
    """Rows a x <= b of a linear program, which are added one by one."""

    def __init__(self) -> None:
        self.entries: list[tuple[np.ndarray, np.ndarray]] = []
        self.limits: list[float] = []
        self.variables = 0

    def new(self, *shape: int) -> np.ndarray:
        """Return the indices of new variables."""
        first, self.variables = self.variables, self.variables + int(np.prod(shape))
        return np.arange(first, self.variables).reshape(shape)

    def at_most(self, limit: float, *terms: tuple[np.ndarray, object]) -> None:
        """Require that a sum over (variables, coefficients) is at most a limit."""
        columns = np.concatenate([np.ravel(which) for which, _ in terms])
        values = np.concatenate(
            [np.broadcast_to(by, np.shape(which)).ravel() for which, by in terms]
        )
        self.entries.append((columns, values))
        self.limits.append(limit)

    def least(self, cost: np.ndarray, bounds: np.ndarray) -> float:
        """Return the minimum cost."""
        rows = np.repeat(
            np.arange(len(self.entries)), [len(columns) for columns, _ in self.entries]
        )
        columns, values = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        matrix = scipy.sparse.csr_array(
            (values, (rows, columns)), shape=(len(self.limits), self.variables)
        )
        return float(
            scipy.optimize.linprog(cost, matrix, self.limits, bounds=bounds, method="highs-ipm").fun
        )


def time_indexed(problem: ContinuousServingProblem, seconds: float) -> tuple[float, int]:
    """Return the minimum mean latency of tasks that may end in parts, and the number of
    variables.
    """
    prepared = prepare(problem, "sequential")
    tokens = np.array([problem.tokens_per_step(length)[0] for length in LENGTHS])
    arrival = (problem.arrival_seconds - problem.arrival_seconds.min())[prepared.order]
    ready = arrival + prepared.upload_seconds[prepared.order]
    outputs = problem.scenarios[0][prepared.order].astype(np.float64)
    (draft_slope, draft_pass, _), (verify_slope, verify_pass, _) = (
        prepared.pieces[0][0],
        prepared.pieces[1][0],
    )
    (draft, verify), (first_draft, first_verify) = (
        operations(prepared, prepared.inputs, new) for new in (False, True)
    )
    work = (draft_slope * draft + verify_slope * verify)[:, LENGTHS]
    taken_in, prompt = (
        draft_slope * (first_draft - draft)[:, -1],
        verify_slope * (first_verify - verify)[:, 0],
    )
    own = verify_pass + LENGTHS * draft_pass + work  # of a step that serves no other task
    drafts = np.where(LENGTHS > 0, taken_in[:, None], 0.0)
    alone = prompt + (own / tokens * outputs[:, None] + drafts).min(axis=1)

    program, slots = Program(), int((ready.max() + LONGEST) / seconds) + 1
    steps = program.new(slots, len(LENGTHS))  # by the longest draft
    used: list[list[tuple[np.ndarray, object]]] = [
        [(steps[slot], verify_pass + LENGTHS * draft_pass)] for slot in range(slots)
    ]
    presence: list[tuple[np.ndarray, np.ndarray]] = []
    for k, begin in enumerate((ready / seconds).astype(int)):
        count = min(int(LONGEST / seconds), slots - begin)
        present, prompts, takes_in = program.new(3, count)
        served = program.new(count, len(LENGTHS))
        ends = (begin + np.arange(count) + 1) * seconds
        presence.append((present, (ends <= ready[k] + alone[k]) * 1.0))
        for j in range(count):
            slot, later = begin + j, present[j + 1 : j + 2]
            own_terms = [(prompts[j : j + 1], prompt[k]), (takes_in[j : j + 1], taken_in[k])]
            used[slot] += [(served[j], work[k]), *own_terms]
            for place in range(
                len(LENGTHS)
            ):  # in no more steps than there are, with drafts as long
                program.at_most(0.0, (served[j, place:], 1.0), (steps[slot, place:], -1.0))
            program.at_most(0.0, (served[j], own[k]), *own_terms, (present[j], -seconds))
            program.at_most(
                -outputs[k], (served[: j + 1], -tokens), (later, -outputs[k])
            )  # finished tasks have all of their tokens
            program.at_most(-1.0, (prompts[: j + 1], -1.0), (later, -1.0))
            every = 1.0 / (
                outputs[k] / tokens[1:]
            )  # the part of the draft model's prompt that a step pays for
            program.at_most(0.0, (served[: j + 1, 1:], every), (takes_in[: j + 1], -1.0))
            if j:
                program.at_most(0.0, (present[j], 1.0), (present[j - 1], -1.0))
    for terms in used:
        program.at_most(seconds, *terms)
    cost, bounds = np.zeros(program.variables), np.tile([0.0, np.inf], (program.variables, 1))
    for present, least in presence:
        cost[present] = seconds / len(presence)
        bounds[present, 0], bounds[present, 1] = least, 1.0
    early = (ready % seconds).mean()  # of the first interval, before the task arrived
    return program.least(cost, bounds) - early + float((ready - arrival).mean()), program.variables


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    tasks, seconds, rate = (
        int(given.get(0, 100)),
        float(given.get(1, 0.4)),
        float(given.get(2, 0.8)),
    )
    problem = specopt.generate(
        "continuous-serving/arrivals", tasks=tasks, requests_per_second=rate, seed=1
    )
    assert isinstance(problem, ContinuousServingProblem)
    started = time.process_time()
    problem = dataclasses.replace(problem, embedding_bits_per_token=BITS_PER_TOKEN)
    found, variables = time_indexed(problem, seconds)
    print(
        f"{found:.2f} s, {variables:,} variables, {time.process_time() - started:.0f} s of a"
        " processor"
    )
