"""A plan of placement played: continuous batching, random acceptances and trips, draft units with queues of their own.

The judge computes cycles from mean values; here every pass takes who waits when the last one ended. A client that is
assigned to a draft group keeps to one of its units. Half of a trip is before, half after what happens at the far end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement import PlacementProblem
from specopt.models.placement_plan import PlacementPlan, Served, UnitGroup
from specopt.solvers._kernels.placement.simulation import PlacedEntry, PlacedMachine, PlacedPlan, play
from specopt.solvers.simulation import Replications, Simulation, Tell, judged, random_key

MAX_ROUNDS = 1_000_000
WARM_UP = 0.25
"""Share of the counted time that is played before it: clients start within one cycle of each other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacementSimulation(Simulation):
    """What a plan yields when it is played, beside the judge's numbers.

    `estimates` are "tokens_per_second" of all clients, and the "busy_share" of the units of verifiers in use.

    Parameters
    ----------
    problem_sha256
        The problem.
    rounds
        Judged cycles of the slowest client that a replication counts.
    cycles, judged_cycles
        Mean seconds of a round of the clients of every entry, groups in order: played, and by the judge.
    rates
        Tokens per second of one client of every entry, shape (replications, entries).
    """

    kind = PlacementProblem.kind
    problem_sha256: str
    rounds: int
    cycles: Floats = field(repr=False)
    judged_cycles: Floats = field(repr=False)
    rates: Floats = field(repr=False)


def simulate(
    problem: PlacementProblem,
    plan: PlacementPlan,
    *,
    seed: int = 0,
    replications: int = 10,
    rounds: int = 100,
    callback: Tell | None = None,
) -> PlacementSimulation:
    """Play a plan.

    Parameters
    ----------
    problem
        Verifiers, drafters and clients.
    plan
        A feasible plan that serves somebody.
    seed
        Decides all luck.
    replications
        Independent runs, at least 2.
    rounds
        Judged cycles of the slowest client that a run counts, after a quarter as many that it does not.
    callback
        Called after every run with the runs done and the mean tokens per second so far.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the plan violates the problem or serves nobody.
    """
    runs = Replications(seed, replications, callback, minimum=2)
    model = judged(problem, plan).terms["tokens_per_second"]
    if not plan.groups:
        raise InvalidInput("policy: expected a plan that serves clients, got one without groups")
    rounds = integer("rounds", rounds, 1, MAX_ROUNDS)
    judged_cycles = np.array([seconds for group in plan.groups for seconds in problem.unit(plan, group).seconds])
    placed = _Arrays(problem, plan, judged_cycles).placed
    clients = np.bincount(placed.entry, minlength=len(judged_cycles))
    units = sum(group.units for group in plan.groups)
    span = rounds * float(judged_cycles.max())
    done, tokens = np.zeros((2, runs.count, len(judged_cycles)), np.int64)
    busy = np.zeros((runs.count, len(placed.machines)))

    def play_run(part: slice) -> None:
        run = part.start
        key = random_key(runs.seed) + np.uint64(run)
        play(key, placed, WARM_UP * span, (1.0 + WARM_UP) * span, done[run], tokens[run], busy[run])

    def figures(runs: int) -> dict[str, Floats]:
        return {
            "tokens_per_second": tokens[:runs].sum(axis=1) / span,
            "busy_share": busy[:runs, :units].mean(axis=1) / span,
        }

    found = runs.play(play_run, figures)
    with np.errstate(divide="ignore"):
        cycles = clients * span * runs.count / done.sum(axis=0)
    return runs.result(
        PlacementSimulation,
        "plan",
        found,
        model=model,
        problem_sha256=problem.sha256,
        rounds=rounds,
        cycles=cycles,
        judged_cycles=judged_cycles,
        rates=tokens / (clients * span),
    )


class _Arrays:
    """A plan as the kernel reads it, put together machine by machine."""

    def __init__(self, problem: PlacementProblem, plan: PlacementPlan, spread: Floats) -> None:
        self.problem: Any = problem
        self.plan = plan
        self.pieces: list[Any] = []
        self.trips: list[float] = []
        self.chances: list[float] = []
        machines: list[Any] = []
        entries: list[Any] = []
        clients: list[tuple[int, int, int]] = []  # entry, verifier, draft unit
        drafts: list[Any] = []
        units, held = sum(group.units for group in plan.groups), []
        for draft in plan.draft_groups:
            server: Any = problem.drafter[draft.drafter].server
            held.append(cycle(range(units + len(drafts), units + len(drafts) + draft.units)))
            drafts += draft.units * [(*self._rows(server.values[draft.pool]), 0, 0, 0, 0, 1.0, False)]
        for group in plan.groups:
            first = len(entries)
            entries += [(*self._entry(group, one), spread[first + i]) for i, one in enumerate(group.clients)]
            machine = self._verifier(group)
            for _ in range(group.units):
                for offset, one in enumerate(group.clients):
                    for _ in range(one.per_unit):
                        unit = -1 if one.draft_group is None else next(held[one.draft_group])
                        clients.append((first + offset, len(machines), unit))
                machines.append(machine)
        self.placed = PlacedPlan(
            np.array(machines + drafts, PlacedMachine), np.array(entries, PlacedEntry),
            np.array(self.pieces), np.array(self.trips), np.array(self.chances, np.float64),
            *np.array(clients, np.int64).T.copy(),
        )  # fmt: skip

    def _rows(self, passes: PassPieces) -> tuple[int, int]:
        first = len(self.pieces)
        self.pieces += list(passes.rows)
        return first, len(self.pieces)

    def _verifier(self, group: UnitGroup) -> tuple[Any, ...]:
        """Return the fields of a unit of a verifier."""
        verifier, beside = self.problem.verifier[group.verifier], (0, 0, 0, 0)
        rows = self._rows(verifier.passes)
        if group.beside is not None:
            drafter, k = self.problem.drafter[group.beside.drafter], group.beside.draft_tokens
            beside = (*self._rows(drafter.beside.values[group.verifier]), *_passes(drafter, k))
        return (*rows, *beside, 1.0 / (1.0 - verifier.reserved_share), True)

    def _entry(self, group: UnitGroup, one: Served) -> tuple[Any, ...]:
        """Return the fields of an entry, all but how its clients' starts are spread."""
        problem, of = self.problem, self.problem.client_class[one.class_]
        drafter, k = problem.drafter_of(self.plan, group, one), problem.length_of(group, one)
        first_trip, first_chance = len(self.trips), len(self.chances)
        trips, uplink, each, drafting = np.zeros(1), 0.0, 0.0, (0, 0)
        if one.place == "device":
            trips = np.atleast_1d(of.round_trip_seconds.values[group.verifier])
            uplink = k * problem.bits_per_draft_token / (of.uplink_bits_per_second or np.inf)
            each = of.device_seconds_per_token.values[drafter.name]
        elif one.draft_group is not None:
            pool = problem.pool[self.plan.draft_groups[one.draft_group].pool]
            trips = np.atleast_1d(pool.round_trip_seconds.values[group.verifier])
            drafting = _passes(drafter, k)
        self.trips += trips.tolist()
        if drafter is not None:
            self.chances += np.cumprod(of.accepted(drafter.name, k)[: k + one.overlap]).tolist()
        passes = (1, 1) if drafter is None or drafter.parallel else (k, k + 1)
        return (
            k + 1, of.context_tokens, first_trip, len(trips), uplink, each * passes[0], each * passes[1], one.overlap,
            first_chance, len(self.chances) - first_chance, *drafting,
        )  # fmt: skip


def _passes(drafter: Any, k: int) -> tuple[int, int]:
    """Return the passes of a drafter for k tokens, and the tokens of a sequence in each."""
    return (1, k) if drafter.parallel else (k, 1)
