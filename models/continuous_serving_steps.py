"""Plans of continuous serving, timed step by step for the judge.

A plan is a list of phases; each lists every task in batches and holds from its first step until the next one's. At
every step the unfinished tasks that are ready are served, all of them, in the listed order. What is timed:

* Members in their first step run as a batch of their own directly before the rest of their batch. Of the others the
  longest, max_k (I_k + g_k), stands for I_m + (n - 1) L in Eq. 13-14; g_k is what a task has gained so far.
* A step of speculation length l adds L(alpha_k, l) to g_k; a task has finished after the first step in which g_k
  reaches its length Q_k, but for a relative 1e-12.
* Memory is counted run by run: the number of tasks times the longest, max_k (I_k + min(Q_k, g_k after the step)).
* With `min_speculation_length` 0 a batch may guess nothing for a while: it has no draft stage then and counts for
  the verify model's memory alone. The first draft pass after that takes in all that the draft model has not seen.
* Where a phase brings together tasks that ran apart, each newcomer costs `regroup_seconds` on the stages that move it.

Between two events (a task joins or has had its first step, a phase begins) runs only lose tasks. A block of steps is
then computed at once: one row per run, one column per step. Plans of very many steps are served phase by phase instead,
see `serving_phases`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from specopt.models.continuous_serving_data import ContinuousServingData, ContinuousServingPlan
from specopt.models.fields import Floats, Ints, Truths
from specopt.models.problem import exceeds
from specopt.models.serving_stages import stage_ends, too_much

ROUNDING = 1e-12
"""Relative distance within which a clock or a length counts as reached."""

ENTRIES_AT_ONCE = 1 << 17
"""Tasks times decoding steps of a block."""

LONG, ENTRIES_PER_EVENT = 2_000_000, 1000
"""Tasks times decoding steps, of all scenarios, from which whole phases are served at once; what an event counts as."""

STEPS_TO_ARRIVAL = 64
"""Most steps of a block while tasks have yet to arrive."""


@dataclass(frozen=True)
class Stretch:
    """Steps in which the same runs are served.

    Parameters
    ----------
    start, end
        In seconds since the earliest arrival.
    first_step, last_step
        From 1.
    sizes, lengths
        Tasks and speculation length of each run, in order.
    """

    start: float
    end: float
    first_step: int
    last_step: int
    sizes: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Played:
    """What became of the tasks.

    Parameters
    ----------
    finish
        When each task has finished, in seconds since the earliest arrival.
    stretches
        What ran when.
    breaches
        One sentence for every listed batch that does not fit a model's memory.
    """

    finish: Floats
    stretches: list[Stretch]
    breaches: list[str]


def phase_defects(problem: ContinuousServingData, plan: ContinuousServingPlan) -> list[str]:
    """Return why the phases are none of this problem."""
    found = []
    drafting = problem.mechanism_of(plan) != "autoregressive"
    before = 0
    for number, phase in enumerate(plan.phases):
        where = f"phases[{number}]"
        if number == 0 and phase.first_step != 1:
            found.append(f"{where}.first_step: expected 1, got {phase.first_step}")
        if phase.first_step <= before:
            found.append(f"{where}.first_step: expected more than {before}, got {phase.first_step}")
        before = phase.first_step
        lengths = phase.lengths(plan.speculation_length)
        if len(lengths) != len(phase.batches):
            found.append(f"{where}.speculation_length: expected {len(phase.batches)} entries, got {len(lengths)}")
        least = problem.min_speculation_length if drafting else 0
        if min(lengths) < least or (max(lengths) > 0 and not drafting):
            word = f"at least {least}" if drafting else "0 (autoregressive)"
            found.append(f"{where}.speculation_length: expected {word}, got {phase.speculation_length}")
        listed = np.fromiter(itertools.chain.from_iterable(phase.batches), np.int64)
        if not np.array_equal(np.sort(listed), np.arange(problem.tasks)):
            found.append(f"{where}.batches: expected each of the tasks 0 to {problem.tasks - 1} once")
    return found


def length_violations(problem: ContinuousServingData, plan: ContinuousServingPlan) -> list[str]:
    """Return which phases guess more than the problem allows ((24f))."""
    least, limit = problem.min_speculation_length, problem.max_speculation_length or 0
    return [
        f"phases[{number}].speculation_length: expected {least} to {limit}, got {length}"
        for number, phase in enumerate(plan.phases)
        for length in sorted(set(phase.lengths(plan.speculation_length)))
        if not least <= length <= limit
    ]


def play(problem: ContinuousServingData, plan: ContinuousServingPlan) -> tuple[Played, ...]:
    """Return what becomes of the tasks in every scenario."""
    ready = problem.readiness(plan)[1]
    scenarios = problem.scenarios
    fastest = problem.tokens_per_step(problem.max_speculation_length or 0)
    events = ENTRIES_PER_EVENT * len(np.unique(ready)) * len(scenarios)
    long = sum(float((outputs / fastest).sum()) for outputs in scenarios) + events > LONG
    found = []
    for outputs in scenarios:
        run = _Run(problem, plan, outputs, ready)
        serve = run.whole_phase if long else run.block
        while run.unfinished.any():
            serve()
        found.append(Played(run.finish, run.stretches, list(run.breaches.values())))
    return tuple(found)


class _Run:
    """The state of a plan that is being played: clock, step, phase, and what each task has gained."""

    def __init__(
        self, problem: ContinuousServingData, plan: ContinuousServingPlan, outputs: Ints, ready: Floats
    ) -> None:
        self.problem, self.plan, self.outputs, self.ready = problem, plan, outputs, ready
        self.mechanism = problem.mechanism_of(plan)
        lengths = {length for phase in plan.phases for length in phase.lengths(plan.speculation_length)}
        self.lengths = sorted(lengths)
        self.tokens = np.stack([problem.tokens_per_step(length) for length in self.lengths])
        self.counts = np.zeros_like(self.tokens)  # steps served, by speculation length and task
        self.served = np.zeros(problem.tasks, np.bool_)
        self.unseen = problem.input_tokens - 1.0  # tokens that the draft model lacks, besides the last
        self.unfinished = np.ones(problem.tasks, np.bool_)
        self.finish = np.zeros(problem.tasks)
        self.clock, self.step, self.phase = float(ready.min()), 1, -1
        self.stretches: list[Stretch] = []
        self.breaches: dict[tuple[int, int, str], str] = {}
        self.batch_of = np.zeros(problem.tasks, np.int64)

    def block(self) -> None:
        """Serve the steps up to the next event."""
        entering = self._enter_phase()
        active = self._active()
        parts = 2 * self.batch_of[active] + self.served[active]  # the first step of members before the rest
        order = np.argsort(parts, kind="stable")
        active, parts = active[order], parts[order]
        starts = np.flatnonzero(np.diff(parts, prepend=-1))  # of every run among the active
        first = parts[starts] % 2 == 0
        gained, target = self._gain(active, 1 if first.any() else None)
        serving = gained[:, :-1] < target[:, None]
        serving[:, 0] = True  # they are unfinished, however sums of steps at several lengths are rounded
        sizes = np.add.reduceat(serving, starts, axis=0, dtype=np.int64)
        reached = np.where(serving, self.problem.input_tokens[active][:, None] + gained[:, :-1], 0.0)
        lengths = self.length_of[active][starts]
        unseen = np.ones(sizes.shape)
        unseen[:, 0] += np.maximum.reduceat(self.unseen[active], starts)
        draft, verify = self._stage_seconds(sizes, np.maximum.reduceat(reached, starts), lengths, first, unseen)
        if entering and self.problem.regroup_seconds > 0.0:
            self._add_regrouping(np.split(active, starts[1:]), first, lengths, draft, verify)
        completed = self._completed(draft, verify)
        ends = np.concatenate([[0.0], np.cumsum(completed[-1])])
        steps = self._steps_served(ends[1:])
        gained, serving, sizes = gained[:, : steps + 1], serving[:, :steps], sizes[:, :steps]
        self._check_memory(active, starts, sizes, lengths, np.where(serving, gained[:, 1:], -np.inf))
        own = serving.sum(axis=1)
        done = gained[:, steps] >= target
        run = np.repeat(np.arange(len(starts)), sizes[:, 0])
        self.finish[active[done]] = self.clock + (ends[own - 1] + completed[run, own - 1])[done]
        self.unfinished[active[done]] = False
        self.served[active] = True
        self.unseen[active] = np.where(self.length_of[active] > 0, 0.0, self.unseen[active] + steps)
        self.counts[self.slot_of[active], active] += own
        self._note(sizes, lengths, ends)
        self.clock += float(ends[steps])
        self.step += steps

    def whole_phase(self) -> None:
        """Serve the steps of a phase, without a list of what ran when."""
        from specopt.models import serving_phases

        entering = self._enter_phase()
        problem, phases = self.problem, self.plan.phases
        order = np.argsort(self.batch_of, kind="stable")  # members of a batch lie side by side in memory
        batch_of, slot = self.batch_of[order], self.slot_of[order]
        counts, tokens, outputs = self.counts[slot, order], self.tokens[slot, order], self.outputs[order]
        others = (self.counts * self.tokens).sum(axis=0)[order] - counts * tokens
        target = outputs - ROUNDING * np.maximum(tokens, outputs)
        task = np.column_stack(
            [problem.input_tokens[order], outputs, target, tokens, others, counts, self.unseen[order]]
        )
        ready, finish, served = self.ready[order], self.finish[order], self.served[order]
        waiting = np.lexsort((~served, batch_of, np.maximum(ready, self.clock * (1 + ROUNDING))))
        lengths = np.array(phases[self.phase].lengths(self.plan.speculation_length))
        last = phases[self.phase + 1].first_step - 1 if self.phase + 1 < len(phases) else 1 << 62
        regroup = problem.regroup_seconds if entering else 0.0
        setting = self.clock, self.step, last, self.mechanism == "pipelined", regroup, ROUNDING
        needed = np.zeros((2, len(lengths)))
        self.clock, self.step = serving_phases.serve(
            task, ready, finish, served, batch_of, self.batch_before[order], lengths, waiting[finish[waiting] == 0.0],
            *_rates(problem), setting, needed,
        )  # fmt: skip
        self.counts[slot, order], self.unseen[order] = task[:, -2:].T
        self.served[order], self.finish[order] = served | (task[:, -2] > counts), finish
        self.unfinished = self.finish == 0.0
        for which, model, limit in problem.limited_models(self.mechanism):
            amounts = model.parameter_bytes + needed[int(which == "verify")]
            for batch in np.flatnonzero(amounts > limit).tolist():
                self._limit(which, batch, float(amounts[batch]), limit)

    def _note(self, sizes: Ints, lengths: Ints, ends: Floats) -> None:
        """Add the stretches of a block: steps in which the same tasks are served."""
        changes = np.flatnonzero((sizes[:, 1:] != sizes[:, :-1]).any(axis=0)) + 1
        for begin, end in itertools.pairwise([0, *changes.tolist(), sizes.shape[1]]):
            there = sizes[:, begin] > 0
            shape = tuple(sizes[there, begin].tolist()), tuple(lengths[there].tolist())
            times = self.clock + float(ends[begin]), self.clock + float(ends[end])
            self.stretches.append(Stretch(*times, self.step + begin, self.step + end - 1, *shape))

    def _enter_phase(self) -> bool:
        """Enter the phase that holds at this step; return whether it is a later one that begins with it."""
        phases, entered = self.plan.phases, False
        while self.phase + 1 < len(phases) and phases[self.phase + 1].first_step <= self.step:
            self.phase += 1
            entered = True
        if entered:
            phase = phases[self.phase]
            order = np.fromiter(itertools.chain.from_iterable(phase.batches), np.int64)
            sizes = [len(batch) for batch in phase.batches]
            self.batch_before, self.batch_of = self.batch_of, np.empty_like(self.batch_of)
            self.batch_of[order] = np.repeat(np.arange(len(sizes)), sizes)
            self.length_of = np.array(phase.lengths(self.plan.speculation_length), np.int64)[self.batch_of]
            self.slot_of = np.searchsorted(self.lengths, self.length_of)
        return entered and self.phase > 0

    def _active(self) -> Ints:
        """Return the tasks of this step; where none is ready, the clock goes on to the next that is."""
        ready = self.unfinished & (self.ready <= self.clock * (1 + ROUNDING))
        if not ready.any():
            self.clock = float(self.ready[self.unfinished].min())
            ready = self.unfinished & (self.ready <= self.clock * (1 + ROUNDING))
        self.waiting = self.ready[self.unfinished & ~ready]
        return np.flatnonzero(ready)

    def _gain(self, active: Ints, most: int | None) -> tuple[Floats, Floats]:
        """Return g_k before each step of the block and after its last, and what g_k has to reach."""
        slot = self.slot_of[active]
        tokens, outputs = self.tokens[slot, active], self.outputs[active].astype(np.float64)
        counts = self.counts[:, active]
        count = counts[slot, np.arange(len(active))]
        counts[slot, np.arange(len(active))] = 0.0
        others = (counts * self.tokens[:, active]).sum(axis=0)  # gained at other speculation lengths
        target = outputs - ROUNDING * np.maximum(tokens, outputs)
        steps = max(1, int(np.ceil((target - others) / tokens - count).max()))
        if self.phase + 1 < len(self.plan.phases):
            steps = min(steps, self.plan.phases[self.phase + 1].first_step - self.step)
        steps = min(steps, max(1, ENTRIES_AT_ONCE // len(active)), most or steps)
        if len(self.waiting):
            steps = min(steps, STEPS_TO_ARRIVAL)
        gained = others[:, None] + (count[:, None] + np.arange(steps + 1)) * tokens[:, None]
        some = max(1, int((gained[:, :-1] < target[:, None]).any(axis=0).sum()))
        return gained[:, : some + 1], target

    def _stage_seconds(
        self, sizes: Ints, reached: Floats, lengths: Ints, first: Truths, unseen: Floats
    ) -> tuple[Floats, Floats]:
        """Return T^d and T^v of every run (row) at every step (column)."""
        draft, verify = np.zeros_like(reached), np.zeros_like(reached)
        for length in np.unique(lengths).tolist():
            rows = lengths == length
            shape = sizes[rows], reached[rows], length, first[rows][:, None]
            draft[rows], verify[rows] = self.problem.stage_seconds(*shape, unseen[rows])
        return draft * (sizes > 0), verify * (sizes > 0)

    def _add_regrouping(self, runs: list[Ints], first: Truths, lengths: Ints, draft: Floats, verify: Floats) -> None:
        """Add what moving sequences to other batches takes in the first step."""
        for row in np.flatnonzero(~first):
            moved = len(runs[row]) - int(np.bincount(self.batch_before[runs[row]]).max())
            seconds = self.problem.regroup_seconds * moved
            verify[row, 0] += seconds
            if lengths[row] > 0:
                draft[row, 0] += seconds

    def _completed(self, draft: Floats, verify: Floats) -> Floats:
        """Return C of every run at every step, since the step began (Eq. 20)."""
        completed = np.empty_like(verify)
        done = np.zeros(verify.shape[1])
        drafted = np.zeros(verify.shape[1])
        for row, times in enumerate(zip(draft, verify, strict=True)):
            drafted, done = stage_ends(self.mechanism, drafted, done, *times)
            completed[row] = done
        return completed

    def _steps_served(self, ends: Floats) -> int:
        """Return the steps of the block that are over when the next task is ready."""
        if not len(self.waiting):
            return len(ends)
        joined = self.waiting.min() <= (self.clock + ends) * (1 + ROUNDING)
        return int(np.argmax(joined)) + 1 if joined.any() else len(ends)

    def _check_memory(self, active: Ints, starts: Ints, sizes: Ints, lengths: Ints, gained: Floats) -> None:
        """Note which runs do not fit; tasks that a step does not serve have gained minus infinity."""
        inputs, outputs = self.problem.input_tokens[active][:, None], self.outputs[active][:, None]
        tokens = np.maximum(0.0, np.maximum.reduceat(inputs + np.minimum(outputs, gained), starts))
        for which, model, limit in self.problem.limited_models(self.mechanism):
            needed = model.parameter_bytes + (sizes * float(model.kv_bytes_per_token) * tokens).max(axis=1)
            for row in np.flatnonzero(needed > limit).tolist():
                if which == "verify" or lengths[row] > 0:
                    self._limit(which, int(self.batch_of[active[starts[row]]]), float(needed[row]), limit)

    def _limit(self, which: str, batch: int, needed: float, limit: float) -> None:
        """Note a batch that needs more than its model has."""
        if exceeds(needed, limit):
            sentence = f"phases[{self.phase}].batches[{batch}]: {too_much(needed, which, limit)}"
            self.breaches.setdefault((self.phase, batch, which), sentence)


def _rates(problem: ContinuousServingData) -> tuple[Floats, Floats]:
    """Return operations and bytes per token of both models, and the pieces of both runtimes."""
    models, lines = np.zeros((2, 4)), []
    both = (problem.draft, problem.draft_runtime), (problem.verify, problem.verify_runtime)
    for which, (model, runtime) in enumerate(both):
        if model is not None:
            models[which, :2] = model.flops_per_token, model.flops_per_token_pair
            models[which, 2:] = model.flops_per_logit, model.kv_bytes_per_token
        lines.append([(one.seconds_per_flop, one.overhead_seconds) for one in runtime.pieces] if runtime else [])
    count = max(map(len, lines))
    return models, np.array([rows + [(0.0, 0.0)] * (count - len(rows)) for rows in lines])
