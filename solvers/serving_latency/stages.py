"""Input data of the compiled kernels for one speculation length (see
`specopt.solvers.serving_latency.kernels.stages`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class Stages:
    """A prepared problem at one speculation length.

    Parameters
    ----------
    prepared
        Prepared problem.
    length
        Speculation length l.
    steps
        Number of decoding steps of every task, in sorted order.
    arrays
        A tuple of three arrays: the data of each task, the setting, and the runtimes. The runtimes
        are either the P linear pieces of both stages' runtimes, with shape (2, P, 3), or tables of
        stage times, with shape (2, (K + 1) K, N).
    """

    prepared: Prepared
    length: int
    steps: Ints
    arrays: tuple[Floats, Floats, Floats]

    @cached_property
    def data(self) -> Any:
        """The arrays as the record that all kernels accept. Accessing this property loads Numba."""
        from specopt.solvers.serving_latency.kernels.stages import Data

        return Data(*self.arrays)

    @property
    def overlap(self) -> bool:
        """Whether drafting for one batch can overlap with verification for another."""
        return self.prepared.overlap

    @property
    def linear(self) -> bool:
        """Whether the runtimes of both stages are affine."""
        return self.prepared.linear


def stages(prepared: Prepared, length: int, conservative: bool = False) -> Stages:
    """Return the kernels' input data for one speculation length (Eq. 13-14), computed on first use.

    If `conservative` is true, all output lengths are set to O_max.
    """
    conservative = conservative or prepared.problem.output_lengths == "conservative"
    key = length, conservative
    if key not in prepared.kept:
        outputs, tokens = prepared.outputs, prepared.tokens_per_step(length)
        if conservative:
            outputs = np.full(prepared.tasks, float(prepared.problem.longest_output))
        if conservative or prepared.problem.rounds == "slowest":
            steps = np.full(prepared.tasks, prepared.batch_steps(outputs, length))
        else:
            steps = prepared.steps_of(outputs, length)
        runtimes = (
            tabled(prepared, length, int(steps.max())) if prepared.tabled else prepared.runtimes
        )
        (token, pair, logit), (verify_token, verify_pair, verify_logit) = prepared.models
        inputs, seen = prepared.inputs, prepared.inputs + length
        logits = verify_logit * (1 + length)
        task = np.stack(
            [
                inputs,
                outputs,
                steps,
                token * inputs + pair * inputs**2 + logit,
                token + pair * (inputs + 1) + logit,
                token + pair * (inputs + tokens) + logit,
                verify_token * seen + verify_pair * seen**2 + logits,
                (1 + length) * (verify_token + verify_pair * (seen + tokens)) + logits,
            ],
            axis=1,
        )
        rates = [pair, pair * tokens, (1 + length) * verify_pair * tokens]
        setting = np.array(
            [length, prepared.overlap, *rates, *prepared.memory, prepared.tabled], np.float64
        )
        prepared.kept[key] = Stages(prepared, length, steps, (task, setting, runtimes))
    found: Stages = prepared.kept[key]
    return found


def tabled(prepared: Prepared, length: int, steps: int) -> Floats:
    """Tabulate the draft times and the verify times at every step, as an array with shape (2, (K +
    1) K, N).

    Row b K + k contains the times, in seconds, of a batch of b tasks whose last task in sorted
    order is k. There is one column per decoding step.
    """
    problem = prepared.problem
    tasks, n = prepared.tasks, np.arange(steps)
    found = np.zeros(
        (2, tasks + 1, tasks, max(steps, 3))
    )  # kernels read three columns of any runtime
    reached = prepared.inputs[:, None] + n * prepared.tokens_per_step(length)
    for b in range(1, prepared.widest + 1):
        last = min(steps, prepared.batch_steps(np.full(b, problem.longest_output), length))
        times = problem.stage_seconds(b, reached[:, :last], length, n[:last] == 0)
        found[0, b, :, :last], found[1, b, :, :last] = times
    return found.reshape(2, -1, found.shape[-1])


def rate(at: Stages, slot: Ints, batches: int, kernels: Any) -> float:
    """Return the inference time T_inf, in seconds, of the plan in which the task at sorted position
    k belongs to batch slot[k].

    The batches run in the order of their indices.
    """
    return float(kernels.plan_seconds(batches, at.data, slot))
