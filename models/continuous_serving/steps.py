"""Step-by-step simulation of continuous-serving plans, used by the judge.

A plan is a list of phases. Each phase assigns all tasks to batches and lasts from its first step
until the next phase begins. Every step serves all unfinished tasks that are ready, in the order of
the batches. A *run* is a group of tasks that a step processes together. The rules are:

* The tasks of a batch that are in their first step form a separate run, directly before the rest of
  the batch. For the other tasks, the longest length max_k (I_k + g_k) replaces I_m + (n - 1) L in
  Eq. 13-14, where g_k is the number of tokens that task k has gained so far.
* A step with speculation length l adds L(alpha_k, l) to g_k. A task finishes with the first step in
  which g_k reaches its output length Q_k, up to a relative error of 1e-12.
* Each run needs KV-cache memory for its number of tasks times the longest length,
  max_k (I_k + min(Q_k, g_k after the step)).
* If `min_speculation_length` is 0, a batch may stop drafting for a while. The batch then has no
  draft stage and uses only the verify model's memory. The next draft pass processes all tokens that
  the draft model has not seen.
* If a new phase merges tasks from different batches, each task that moves adds `regroup_seconds` to
  the stages of its run in the first step of the phase.

An event occurs when a phase begins, a task joins, or a task has completed its first step. Between
two events, tasks leave runs but do not join them. The steps between two events are computed in
blocks, with arrays that have one row per step and one column per task or run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.continuous_serving.data import ContinuousServingData, ContinuousServingPlan
from specopt.models.fields import Floats, Ints, Truths
from specopt.models.problem import exceeds
from specopt.models.serving_data import stage_ends, too_much

ROUNDING = 1e-12
"""Relative tolerance within which a time or a length counts as reached."""

ENTRIES_AT_ONCE = 1 << 17
"""Maximum product of the numbers of tasks and decoding steps in a block. A larger value needs more
memory.
"""

STEPS_TO_ARRIVAL = 64
"""Maximum number of steps in a block while some task is not ready. The steps after a task becomes
ready are discarded, so longer blocks may waste work.
"""

MAX_LISTED_RUNS = 1_000_000
"""Maximum number of runs, summed over all steps, up to which a simulation records stretches."""


@dataclass(frozen=True)
class Stretch:
    """A sequence of consecutive steps in which the number of tasks in each run does not change.

    Parameters
    ----------
    start
        Start time, in seconds since the earliest arrival.
    end
        End time, in seconds since the earliest arrival.
    first_step
        First decoding step of the stretch, counted from 1.
    last_step
        Last decoding step of the stretch, counted from 1.
    sizes
        Number of tasks in each run, in pipeline order.
    lengths
        Speculation length of each run, in pipeline order.
    """

    start: float
    end: float
    first_step: int
    last_step: int
    sizes: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Played:
    """Results of simulating a plan for one sample of output lengths.

    Parameters
    ----------
    finish
        Finish time of each task, in seconds since the earliest arrival.
    stretches
        Stretches in chronological order. They are recorded only for the first sample of output
        lengths, and only if there are at most `MAX_LISTED_RUNS` runs.
    breaches
        Messages about violated memory limits, at most one for each phase, batch and model.
    """

    finish: Floats
    stretches: list[Stretch]
    breaches: list[str]


def play(problem: ContinuousServingData, plan: ContinuousServingPlan) -> tuple[Played, ...]:
    """Simulate a plan for every sample of output lengths, and return one result per sample."""
    ready = problem.readiness(plan)[1]
    found: list[Played] = []
    for outputs in problem.scenarios:
        run = _Run(problem, plan, outputs, ready, listed=not found)
        while run.left.size:
            run.block()
        found.append(Played(run.finish, run.stretches, list(run.breaches.values())))
    return tuple(found)


class _Run:
    """The state of a simulation: the current time, step and phase, and the number of tokens that
    each task has gained.
    """

    def __init__(
        self,
        problem: ContinuousServingData,
        plan: ContinuousServingPlan,
        outputs: Ints,
        ready: Floats,
        listed: bool,
    ) -> None:
        self.problem = problem
        self.plan = plan
        self.listed = listed
        self.mechanism = problem.mechanism_of(plan)
        lengths = {
            length for phase in plan.phases for length in phase.lengths(plan.speculation_length)
        }
        self.lengths = sorted(lengths)
        self.tokens = np.stack([problem.tokens_per_step(length) for length in self.lengths])
        self.counts = np.zeros_like(self.tokens)  # steps served, by speculation length and task
        self.inputs = problem.input_tokens
        self.outputs = outputs
        self.ready = ready
        # tokens that the draft model has not seen, except the last one
        self.unseen = problem.input_tokens - 1.0
        self.served = np.zeros(problem.tasks, np.int64)  # 1 after the first step
        self.over = np.zeros(problem.tasks, np.bool_)
        self.finish = np.zeros(problem.tasks)
        self.left = np.arange(problem.tasks)  # unfinished tasks, in the order of their batches
        self.clock = float(ready.min())
        self.step = 1
        self.phase = -1
        self.stretches: list[Stretch] = []
        self.runs_listed = 0
        self.breaches: dict[tuple[int, int, str], str] = {}
        self.batch_of = np.zeros(problem.tasks, np.int64)
        self.lengths_now = np.zeros(0, np.int64)  # speculation length of each batch of this phase

    def block(self) -> None:
        """Simulate one block of steps. The block ends no later than the next event."""
        entering = self._enter_phase()
        tasks = self._active()
        key = 2 * self.batch_of[tasks] + self.served[tasks]
        if not self.served[tasks].all():
            # tasks in their first step run before the rest of their batch
            order = np.argsort(key, kind="stable")
            tasks, key = tasks[order], key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))  # start of every run
        run = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(tasks)))
        batches = key[starts] // 2
        first = key[starts] % 2 == 0
        lengths = self.lengths_now[batches]
        slot = np.searchsorted(self.lengths, lengths)[run]
        gained, target = self._gain(tasks, slot, bool(first.any()))
        serving = gained[:-1] < target
        # all are unfinished, even if rounding the sums over several lengths suggests otherwise
        serving[0] = True
        sizes = np.add.reduceat(serving, starts, axis=1, dtype=np.int64)
        reached = np.maximum.reduceat(
            np.where(serving, self.inputs[tasks] + gained[:-1], 0.0), starts, axis=1
        )
        unseen = np.ones(sizes.shape)
        unseen[0] += np.maximum.reduceat(self.unseen[tasks], starts)
        draft, verify = self._stage_seconds(sizes, reached, lengths, first, unseen)
        if entering and self.problem.regroup_seconds > 0.0:
            self._add_regrouping(np.split(tasks, starts[1:]), first, lengths, draft, verify)
        completed = self._completed(draft, verify)
        ends = np.concatenate([[0.0], np.cumsum(completed[:, -1])])
        steps = self._steps_served(ends[1:])
        gained = gained[: steps + 1]
        serving = serving[:steps]
        sizes = sizes[:steps]
        self._check_memory(
            tasks, starts, sizes, lengths, batches, np.where(serving, gained[1:], -np.inf)
        )
        own = serving.sum(axis=0)
        done = gained[steps] >= target
        last = own[done] - 1
        self.finish[tasks[done]] = self.clock + (ends[last] + completed[last, run[done]])
        self.served[tasks] = 1
        self.unseen[tasks] = np.where(lengths[run] > 0, 0.0, self.unseen[tasks] + steps)
        self.counts[slot, tasks] += own
        if done.any():
            self.over[tasks[done]] = True
            self.left = self.left[~self.over[self.left]]
        if self.listed:
            self._note(sizes, lengths, ends)
        self.clock += float(ends[steps])
        self.step += steps

    def _note(self, sizes: Ints, lengths: Ints, ends: Floats) -> None:
        """Split a block into stretches, in which the number of tasks per run is constant, and
        record them.
        """
        self.runs_listed += sizes.size
        if self.runs_listed > MAX_LISTED_RUNS:
            self.listed, self.stretches = False, []
            return
        changes = np.flatnonzero((sizes[1:] != sizes[:-1]).any(axis=1)) + 1
        for begin, end in itertools.pairwise([0, *changes.tolist(), len(sizes)]):
            there = sizes[begin] > 0
            shape = tuple(sizes[begin, there].tolist()), tuple(lengths[there].tolist())
            times = self.clock + float(ends[begin]), self.clock + float(ends[end])
            self.stretches.append(Stretch(*times, self.step + begin, self.step + end - 1, *shape))

    def _enter_phase(self) -> bool:
        """Enter the phase that contains the current step. Return whether the step begins a phase
        other than the first.
        """
        phases, before = self.plan.phases, self.phase
        while self.phase + 1 < len(phases) and phases[self.phase + 1].first_step <= self.step:
            self.phase += 1
        if self.phase == before:
            return False
        phase = phases[self.phase]
        order = np.fromiter(itertools.chain.from_iterable(phase.batches), np.int64)
        sizes = [len(batch) for batch in phase.batches]
        self.batch_before, self.batch_of = self.batch_of, np.empty_like(self.batch_of)
        self.batch_of[order] = np.repeat(np.arange(len(sizes)), sizes)
        self.lengths_now = np.array(phase.lengths(self.plan.speculation_length), np.int64)
        self.left = self.left[np.argsort(self.batch_of[self.left], kind="stable")]
        return before >= 0

    def _active(self) -> Ints:
        """Return the tasks that the current step serves. If no task is ready, first advance the
        clock to the time at which a task becomes ready.
        """
        arrival = self.ready[self.left]
        ready = arrival <= self.clock * (1 + ROUNDING)
        if not ready.any():
            self.clock = float(arrival.min())
            ready = arrival <= self.clock * (1 + ROUNDING)
        self.next_ready = float(arrival[~ready].min(initial=np.inf))
        return self.left[ready]

    def _gain(self, tasks: Ints, slot: Ints, first: bool) -> tuple[Floats, Floats]:
        """Return the total number of tokens g_k that each task has gained at each step of a block.

        Parameters
        ----------
        tasks
            Tasks that the block serves.
        slot
            Index of each task's speculation length in the list of all lengths.
        first
            Whether any task is in its first step. If so, the block consists of this step only.

        Returns
        -------
        tuple
            Values of g_k before each step and after the last step, with one row per value, and the
            value of g_k at which each task finishes.
        """
        now = slot, np.arange(len(tasks))
        counts = self.counts[:, tasks]
        tokens = self.tokens[:, tasks]
        count, gain = counts[now], tokens[now]
        counts[now] = 0.0
        others = (counts * tokens).sum(axis=0)  # tokens gained at other lengths
        outputs = self.outputs[tasks]
        target = outputs - ROUNDING * np.maximum(gain, outputs)
        limits = [
            int(np.ceil((target - others) / gain - count).max()),
            1 if first else ENTRIES_AT_ONCE // len(tasks),
        ]
        if self.phase + 1 < len(self.plan.phases):
            limits.append(self.plan.phases[self.phase + 1].first_step - self.step)
        if self.next_ready < np.inf:
            limits.append(STEPS_TO_ARRIVAL)
        steps = np.arange(max(1, min(limits)) + 1)[:, None]
        gained = others + (count + steps) * gain
        some = max(1, int((gained[:-1] < target).any(axis=1).sum()))
        return np.asarray(gained[: some + 1]), np.asarray(target)

    def _stage_seconds(
        self, sizes: Ints, reached: Floats, lengths: Ints, first: Truths, unseen: Floats
    ) -> tuple[Floats, Floats]:
        """Return the durations T^d of the draft stages and T^v of the verify stages, in seconds.
        Each array has one row per step and one column per run.
        """
        draft = np.zeros_like(reached)
        verify = np.zeros_like(reached)
        for length in np.unique(lengths).tolist():
            runs = lengths == length
            shape = sizes[:, runs], reached[:, runs], length, first[runs]
            draft[:, runs], verify[:, runs] = self.problem.stage_seconds(*shape, unseen[:, runs])
        return draft * (sizes > 0), verify * (sizes > 0)

    def _add_regrouping(
        self, runs: list[Ints], first: Truths, lengths: Ints, draft: Floats, verify: Floats
    ) -> None:
        """Prolong the stages in the block's first step by the time for moving sequences between
        batches. The stage durations `draft` and `verify` are modified in place.
        """
        for run in np.flatnonzero(~first):
            moved = len(runs[run]) - int(np.bincount(self.batch_before[runs[run]]).max())
            seconds = self.problem.regroup_seconds * moved
            verify[0, run] += seconds
            if lengths[run] > 0:
                draft[0, run] += seconds

    def _completed(self, draft: Floats, verify: Floats) -> Floats:
        """Return the completion time C of every run in every step, in seconds since the step began
        (Eq. 20).
        """
        one = len(verify) == 1  # numbers take less time than arrays of length 1
        columns: Any = (draft[0].tolist(), verify[0].tolist()) if one else (draft.T, verify.T)
        completed: list[Any] = []
        drafted: Any = 0.0
        done: Any = 0.0
        for T_d, T_v in zip(*columns, strict=True):
            drafted, done = stage_ends(
                self.mechanism, drafted, done, T_d, T_v, max if one else np.maximum
            )
            completed.append(done)
        return np.array([completed]) if one else np.stack(completed, axis=1)

    def _steps_served(self, ends: Floats) -> int:
        """Return the number of steps in the block up to and including the first step that ends
        after another task has become ready.
        """
        earlier = (self.clock + ends) * (1 + ROUNDING) < self.next_ready
        return min(int(np.count_nonzero(earlier)) + 1, len(ends))

    def _check_memory(
        self,
        tasks: Ints,
        starts: Ints,
        sizes: Ints,
        lengths: Ints,
        batches: Ints,
        gained: Floats,
    ) -> None:
        """Record the runs that do not fit in memory. In `gained`, an entry of minus infinity means
        that the step does not serve the task.
        """
        limited = self.problem.limited_models(self.mechanism)
        if not limited:
            return
        held = self.inputs[tasks] + np.minimum(self.outputs[tasks], gained)
        tokens = np.maximum(0.0, np.maximum.reduceat(held, starts, axis=1))
        for which, model, limit in limited:
            needed = model.parameter_bytes + (sizes * float(model.kv_bytes_per_token) * tokens).max(
                axis=0
            )
            for run in np.flatnonzero(needed > limit).tolist():
                if exceeds(needed[run], limit) and (which == "verify" or lengths[run] > 0):
                    batch = int(batches[run])
                    where = f"phases[{self.phase}].batches[{batch}]"
                    sentence = f"{where}: the batch {too_much(needed[run], which, limit)}"
                    self.breaches.setdefault((self.phase, batch, which), sentence)
