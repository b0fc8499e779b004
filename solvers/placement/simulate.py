"""A plan of placement played: continuous batching, random acceptances and trips, draft units with queues of their own.

The judge computes cycles from mean values; here every pass takes who waits when the last one ended. A client that is
assigned to a draft group keeps to one of its units. Half of a trip is before, half after what happens at the far end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement import PlacementProblem
from specopt.models.placement_plan import PlacementPlan, Served, UnitGroup
from specopt.solvers._kernels.placement.simulation import PlacedEntry, PlacedMachine, PlacedPlan, play
from specopt.solvers.simulation import MAX_REPLICATIONS, Estimate, Simulation, Tell, random_key

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
    rates: NDArray[np.float64] = field(repr=False)


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
    started = time.perf_counter()
    if not isinstance(plan, PlacementPlan):
        raise InvalidInput(f"policy: expected a plan of {problem.kind}, got {describe(plan)}")
    model = problem.evaluate(plan).terms["tokens_per_second"]
    if not plan.groups:
        raise InvalidInput("policy: expected a plan that serves clients, got one without groups")
    replications = integer("replications", replications, 2, MAX_REPLICATIONS)
    rounds = integer("rounds", rounds, 1, MAX_ROUNDS)
    seed = integer("seed", seed, 0)
    judged = np.array([seconds for group in plan.groups for seconds in problem.unit(plan, group).seconds])
    placed = _arrays(problem, plan, judged)
    clients = np.bincount(placed.entry, minlength=len(judged))
    units = sum(group.units for group in plan.groups)
    span = rounds * float(judged.max())
    done, tokens = (np.zeros((replications, len(judged)), dtype=np.int64) for _ in range(2))
    busy = np.zeros((replications, len(placed.machines)))
    for run in range(replications):
        key = random_key(seed) + np.uint64(run)
        play(key, placed, WARM_UP * span, (1.0 + WARM_UP) * span, done[run], tokens[run], busy[run])
        if callback is not None:
            callback(run + 1, float(tokens[: run + 1].sum() / (span * (run + 1))))
    with np.errstate(divide="ignore"):
        cycles = clients * span * replications / done.sum(axis=0)
    return PlacementSimulation(
        policy="plan",
        replications=replications,
        seed=seed,
        estimates={
            "tokens_per_second": Estimate.of(tokens.sum(axis=1) / span),
            "busy_share": Estimate.of(busy[:, :units].mean(axis=1) / span),
        },
        model=model,
        seconds=time.perf_counter() - started,
        problem_sha256=problem.sha256,
        rounds=rounds,
        cycles=cycles,
        judged_cycles=judged,
        rates=tokens / (clients * span),
    )


def _arrays(problem: PlacementProblem, plan: PlacementPlan, spread: Floats) -> Any:
    """Return a plan as the kernel reads it."""
    table: dict[str, list[Any]] = {name: [] for name in ("pieces", "trips", "chances")}

    def put(name: str, rows: Any) -> int:
        table[name] += list(rows)
        return len(rows)

    def machine(passes: PassPieces, beside: PassPieces | None = None, **known: Any) -> tuple[Any, ...]:
        first = len(table["pieces"])
        last = first + put("pieces", passes.rows)
        end = last + (0 if beside is None else put("pieces", beside.rows))
        row = {"beside_passes": 0, "beside_tokens": 0, "slowdown": 1.0, "verifies": False} | known
        return (first, last, last, end, *row.values())

    units = sum(group.units for group in plan.groups)
    draft_machines: list[Any] = []
    firsts = []  # of the machines of every draft group
    for draft in plan.draft_groups:
        server = problem.drafter[draft.drafter].server
        assert server is not None, "the plan is feasible"
        firsts.append(units + len(draft_machines))
        draft_machines += draft.units * [machine(server.values[draft.pool])]
    machines: list[Any] = []
    entries, clients = [], []
    held = [0] * len(plan.draft_groups)
    for group in plan.groups:
        verifier, beside, known = problem.verifier[group.verifier], None, {}
        if group.beside is not None:
            drafter, k = problem.drafter[group.beside.drafter], group.beside.draft_tokens
            assert drafter.beside is not None, "the plan is feasible"
            beside = drafter.beside.values[group.verifier]
            known = {"beside_passes": 1 if drafter.parallel else k, "beside_tokens": k if drafter.parallel else 1}
        known |= {"slowdown": 1.0 / (1.0 - verifier.reserved_share), "verifies": True}
        first = len(entries)
        for one in group.clients:
            entries.append((*_entry(problem, group, one, plan, put, table), spread[len(entries)]))
        for _ in range(group.units):
            for offset, one in enumerate(group.clients):
                for _ in range(one.per_unit):
                    drafts_at = -1
                    if one.draft_group is not None:
                        g = one.draft_group
                        drafts_at = firsts[g] + held[g] % plan.draft_groups[g].units
                        held[g] += 1
                    clients.append((first + offset, len(machines), drafts_at))
            machines.append(machine(verifier.passes, beside, **known))
    entry, verifies, drafts = (np.array(column, dtype=np.int64) for column in zip(*clients, strict=True))
    return PlacedPlan(
        machines=np.array(machines + draft_machines, dtype=PlacedMachine),
        entries=np.array(entries, dtype=PlacedEntry),
        pieces=np.array(table["pieces"]),
        trips=np.array(table["trips"]),
        chances=np.array(table["chances"], dtype=np.float64),
        entry=entry,
        verifier=verifies,
        drafter=drafts,
    )


def _entry(
    problem: PlacementProblem, group: UnitGroup, one: Served, plan: PlacementPlan, put: Any, table: dict[str, list[Any]]
) -> tuple[Any, ...]:
    """Return the fields of an entry, all but how its clients' starts are spread."""
    of, drafter = problem.client_class[one.class_], problem.drafter_of(plan, group, one)
    k = problem.length_of(group, one)
    trips, uplink, each, passes, each_pass = np.zeros(1), 0.0, 0.0, 0, 0
    if one.place == "device":
        assert drafter and of.round_trip_seconds and of.device_seconds_per_token, "the plan is feasible"
        trips = np.atleast_1d(of.round_trip_seconds.values[group.verifier])
        uplink = k * problem.bits_per_draft_token / (of.uplink_bits_per_second or np.inf)
        each = of.device_seconds_per_token.values[drafter.name]
    elif one.draft_group is not None:
        assert drafter is not None, "the plan is feasible"
        pool = problem.pool[plan.draft_groups[one.draft_group].pool]
        trips = np.atleast_1d(pool.round_trip_seconds.values[group.verifier])
        passes, each_pass = (1, k) if drafter.parallel else (k, 1)
    chances = () if drafter is None else np.cumprod(of.accepted(drafter.name, k)[: k + one.overlap])
    several = drafter is not None and not drafter.parallel
    first_trip, first_chance = len(table["trips"]), len(table["chances"])
    count, known = put("trips", trips), put("chances", chances)
    return (
        k + 1, of.context_tokens, first_trip, count, uplink, each * (k if several else 1),
        each * (k + 1 if several else 1), one.overlap, first_chance, known, passes, each_pass,
    )  # fmt: skip
