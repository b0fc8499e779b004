"""Simulation of a placement plan with continuous batching.

Acceptances and round-trip times are random, and every draft unit has a queue. The judge, in
contrast, computes cycles from mean values. In the simulation, every pass serves the clients that
are waiting when the previous pass ends. A client of a draft group always uses the same unit of the
group. Half of a round trip precedes the work at the remote end, and half follows it.
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
from specopt.models.placement.plan import PlacementPlan, Served, UnitGroup
from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.placement.kernels.simulation import (
    PlacedClient,
    PlacedEntry,
    PlacedMachine,
    PlacedPlan,
    play,
)
from specopt.solvers.simulation import Replications, Simulation, Tell, judged, random_key

MAX_ROUNDS = 1_000_000
WARM_UP = 0.25
"""Duration of the warm-up, relative to the counted time. The results exclude the warm-up."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacementSimulation(Simulation):
    """The simulated throughput of a plan, together with the values that the judge computes.

    `estimates` contains "tokens_per_second", the total throughput of all clients, and "busy_share",
    the mean fraction of time in which the verifier units in use are busy.

    Parameters
    ----------
    problem_sha256
        SHA-256 digest of the problem.
    rounds
        Duration of a replication without warm-up, in cycles of the slowest client. The judge
        computes the duration of a cycle.
    cycles, judged_cycles
        Mean duration of a round, in seconds, for the clients of every entry, as simulated and as
        judged. Entries are in the order of the groups.
    rates
        Rate of one client of every entry, in tokens per second, shape (replications, entries).
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
    """Simulate a placement plan.

    Parameters
    ----------
    problem
        Problem with verifiers, drafters and clients.
    plan
        Feasible plan that serves at least one client.
    seed
        Seed of all random numbers.
    replications
        Number of independent runs, at least 2.
    rounds
        Duration of a run without warm-up, in cycles of the slowest client. The judge computes the
        duration of a cycle. The warm-up lasts a quarter of the run.
    callback
        Function called after every run with the number of completed runs and the mean tokens per
        second so far.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or if the plan is infeasible or serves no client.
    """
    runs = Replications(seed, replications, callback, minimum=2)
    model = judged(problem, plan).terms["tokens_per_second"]
    if not plan.groups:
        raise InvalidInput("policy: the plan serves no clients; pass a plan with groups")
    rounds = integer("rounds", rounds, 1, MAX_ROUNDS)
    judged_cycles = np.array(
        [seconds for group in plan.groups for seconds in problem.unit(plan, group).seconds]
    )
    placed = _placed(problem, plan, judged_cycles)
    clients = np.bincount(placed.clients["entry"], minlength=len(judged_cycles))
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


def _placed(problem: Any, plan: PlacementPlan, spread: Floats) -> Any:
    """Convert a plan to the record that the simulation kernel reads."""
    pieces: list[Any] = []

    def rows(passes: PassPieces) -> tuple[int, int]:
        pieces.extend(passes.rows)
        return len(pieces) - len(passes.rows), len(pieces)

    trips: list[float] = []
    chances: list[float] = []
    machines: list[Any] = []
    entries: list[Any] = []
    clients: list[Any] = []
    drafts: list[Any] = []
    held: list[Any] = []
    units = sum(group.units for group in plan.groups)
    for draft in plan.draft_groups:
        held.append(cycle(range(units + len(drafts), units + len(drafts) + draft.units)))
        server = problem.drafter[draft.drafter].server
        drafts += draft.units * [(*rows(server.values[draft.pool]), 0, 0, 0, 0, 1.0, False)]
    for group in plan.groups:
        first = len(entries)
        for one in group.clients:
            fields = _entry(problem, plan, group, one, trips, chances)
            entries.append((*fields, spread[len(entries)]))
        verifier, beside = problem.verifier[group.verifier], (0, 0, 0, 0)
        machine = rows(verifier.passes)
        if group.beside is not None:
            drafter = problem.drafter[group.beside.drafter]
            passes = drafter.beside.values[group.verifier]
            beside = (*rows(passes), *_passes(drafter, group.beside.draft_tokens))
        for _ in range(group.units):
            for entry, one in enumerate(group.clients, first):
                for _ in range(one.per_unit):
                    unit = -1 if one.draft_group is None else next(held[one.draft_group])
                    clients.append((entry, len(machines), unit, len(machines), 0, 0, 0.0, 0.0))
            machines.append((*machine, *beside, 1.0 / (1.0 - verifier.reserved_share), True))
    return PlacedPlan(
        np.array(machines + drafts, PlacedMachine),
        np.array(entries, PlacedEntry),
        np.array(pieces),
        np.array(trips),
        np.array(chances, np.float64),
        np.array(clients, PlacedClient),
    )


def _entry(
    problem: Any,
    plan: PlacementPlan,
    group: UnitGroup,
    one: Served,
    trips: list[float],
    chances: list[float],
) -> tuple[Any, ...]:
    """Return the fields of a group of identical clients, except the spread of their start times.

    Append the round-trip times of the group to `trips` and its acceptance probabilities to
    `chances`.
    """
    judged, drafter = problem.entry(plan, group, one), problem.drafter_of(plan, group, one)
    of, k = problem.client_class[one.class_], problem.length_of(group, one)
    first_trip, first_chance = len(trips), len(chances)
    own_trips, uplink, drafting = np.zeros(1), 0.0, (0, 0)
    if one.place == "device":
        own_trips = np.atleast_1d(of.round_trip_seconds.values[group.verifier])
        uplink = k * problem.bits_per_draft_token / (of.uplink_bits_per_second or np.inf)
    elif one.draft_group is not None:
        pool = problem.pool[plan.draft_groups[one.draft_group].pool]
        own_trips = np.atleast_1d(pool.round_trip_seconds.values[group.verifier])
        drafting = _passes(drafter, k)
    trips += own_trips.tolist()
    if drafter is not None:
        chances += np.cumprod(of.accepted(drafter.name, k)[: k + one.overlap]).tolist()
    return (
        judged.new_tokens,
        judged.context_tokens,
        first_trip,
        len(own_trips),
        uplink,
        judged.drafting_seconds,
        judged.ahead_seconds,
        one.overlap,
        first_chance,
        len(chances) - first_chance,
        *drafting,
    )


def _passes(drafter: Any, k: int) -> tuple[int, int]:
    """Return the number of passes that a drafter needs for k tokens, and the tokens per pass."""
    return (1, k) if drafter.parallel else (k, 1)
