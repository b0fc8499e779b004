"""Plans of placement that are played: what follows by hand, and that luck is shared out as the
problem says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.untyped import solve
from small_instances.placement import INSTANCES, one_of_each, passes

from specopt import InvalidInput
from specopt.models.placement.plan import PlacementPlan
from specopt.solvers.placement.simulate import PlacementSimulation, _placed, simulate

Json = dict[str, Any]


def play(
    clients: list[Json],
    *,
    rates: Any = 0.7,
    kind: str = "sequential",
    beside: Json | None = None,
    drafts: Json | None = None,
    trip: Any = 0.4,
    device: float = 0.06,
    units: int = 1,
    **options: Any,
) -> PlacementSimulation:
    """Play a plan for clients of one class on units whose passes take 0.1 s + 0.01 s a token + 1 ms
    a cached token.
    """
    sizes = {"units": 9, "memory_bytes": 1e9}
    problem = one_of_each(
        "goodput",
        2,
        bits_per_draft_token=10.0,
        verifier={**sizes, "reserved_share": 0.5, "passes": passes(0.1, token=0.01, cached=0.001)},
        drafter={
            "kind": kind,
            "beside": {"v": passes(0.02, sequence=0.001, token=0.003)},
            "server": {"p": passes(0.05, token=0.004, cached=0.002)},
        },
        pool={**sizes, "round_trip_seconds": {"v": 0.3}},
        classes=[
            {
                "clients": units * sum(one["per_unit"] for one in clients),
                "context_tokens": 7,
                "acceptance": {"d": rates},
                "device_seconds_per_token": {"d": device},
                "round_trip_seconds": {"v": trip},
                "uplink_bits_per_second": 200.0,
            }
        ],
    )
    clients = [{"class": "c", **one} for one in clients]
    plan = PlacementPlan.from_dict(
        {
            "groups": [{"verifier": "v", "units": units, "beside": beside, "clients": clients}],
            "draft_groups": [{"pool": "p", "drafter": "d", **drafts}] if drafts else [],
        }
    )
    assert not problem.violations(plan)
    return simulate(problem, plan, **options)


DEVICE = {"per_unit": 1, "place": "device", "drafter": "d", "draft_tokens": 2}
POOL = {"per_unit": 1, "place": "pool", "draft_tokens": 2, "draft_group": 0}
PASS = 2 * (
    0.1 + 3 * 0.01 + 0.007
)  # of one client with two drafts; half of every pass is kept for prompts


@pytest.mark.parametrize("kind", ["sequential", "parallel"])
@pytest.mark.parametrize(
    ("clients", "beside"),
    [([{"per_unit": 3, "place": "none"}], 0), ([{"per_unit": 3, "place": "beside"}], 2)],
)
def test_who_is_never_away_is_in_every_pass(kind: str, clients: list[Json], beside: int) -> None:
    """Tests that cycles hold of clients whose drafts wait on the unit: every pass, drafting
    included, is theirs.
    """
    run = play(
        clients,
        kind=kind,
        beside={"drafter": "d", "draft_tokens": beside} if beside else None,
        units=2,
    )
    drafting = (
        0.02 + 3 * 0.001 + 6 * 0.003 if kind == "parallel" else 2 * (0.02 + 3 * 0.001 + 3 * 0.003)
    )
    expected = 2 * (0.1 + 3 * (beside + 1) * 0.01 + 21 * 0.001 + (drafting if beside else 0.0))
    assert run.judged_cycles.tolist() == pytest.approx([expected])
    assert run.cycles.tolist() == pytest.approx(
        [expected], rel=1e-2
    )  # rounds are whole, the window is not
    assert run.estimates["busy_share"].mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("client", "kind", "rates", "drafts", "away"),
    [
        (DEVICE, "sequential", 0.7, None, 0.4 + 0.1 + 0.12),
        (DEVICE, "parallel", 0.7, None, 0.4 + 0.1 + 0.06),
        (
            DEVICE | {"overlap": True},
            "sequential",
            1.0,
            None,
            0.4 + 0.1,
        ),  # drafting 0.18 s ends before the news
        (DEVICE | {"overlap": True}, "sequential", [1.0, 0.0], None, 0.4 + 0.1 + 0.12),
        (
            DEVICE | {"overlap": True},
            "sequential",
            [1.0, 1.0, 0.0],
            None,
            0.4 + 0.1 + 0.12,
        ),  # the guess is wrong
        (POOL, "sequential", 0.7, {"units": 1, "per_unit": 1}, 0.3 + 2 * (0.05 + 0.004 + 0.014)),
        (POOL, "parallel", 0.7, {"units": 1, "per_unit": 1}, 0.3 + 0.05 + 2 * 0.004 + 0.014),
    ],
)
def test_one_client_alone(
    client: Json, kind: str, rates: Any, drafts: Json | None, away: float
) -> None:
    """Tests that the cycle of one client alone is its time away and a pass of its own."""
    run = play([client], kind=kind, rates=rates, drafts=drafts)
    assert run.cycles.tolist() == pytest.approx([away + PASS], rel=1e-2)
    assert run.estimates["busy_share"].mean == pytest.approx(PASS / (away + PASS), rel=1e-2)


def test_drafting_ahead_that_ends_after_the_news() -> None:
    """Tests that a device that drafts longer than the answer takes sends one round after the
    other.
    """
    run = play([DEVICE | {"overlap": True}], rates=1.0, trip=0.0, device=0.2)
    assert run.cycles.tolist() == pytest.approx([3 * 0.2], rel=1e-2)
    assert run.judged_cycles.tolist() == pytest.approx([3 * 0.2])


def test_clients_share_draft_units_evenly() -> None:
    """Tests that eight clients draft faster on eight draft units than together on one."""
    apart = play([POOL | {"per_unit": 8}], drafts={"units": 8, "per_unit": 1}, rounds=1000)
    together = play([POOL | {"per_unit": 8}], drafts={"units": 1, "per_unit": 8}, rounds=1000)
    assert together.cycles[0] > 1.04 * apart.cycles[0]


def test_tokens_of_a_round() -> None:
    """Tests that a round yields 1 + a + a b, and that trips are drawn from all values alike."""
    run = play([DEVICE], rates=[0.8, 0.5], trip=[0.1, 0.2, 0.6], rounds=20_000)
    assert float((run.rates.mean(axis=0) * run.cycles)[0]) == pytest.approx(1 + 0.8 + 0.4, rel=0.01)
    assert run.cycles.tolist() == pytest.approx([0.3 + 0.1 + 0.12 + PASS], rel=0.01)
    assert run.model == pytest.approx(run.mean, rel=0.02)


@pytest.mark.parametrize("option", [{"replications": 1}, {"rounds": 0}])
def test_refusals(option: Any) -> None:
    """Tests that too few replications and no rounds are refused by name."""
    with pytest.raises(InvalidInput, match=f"{next(iter(option))}: expected"):
        play([DEVICE], **option)


@pytest.mark.parametrize("name", ["fair", "ties", "pool"])
def test_each_entry_reads_its_own_trips_and_chances(name: str) -> None:
    """Tests that the ranges of trips and of chances of all entries follow each other, up to the end
    of the arrays.
    """
    problem: Any = INSTANCES[name]
    plan: Any = solve(problem).plan
    placed = _placed(problem, plan, np.ones(sum(len(group.clients) for group in plan.groups)))
    for first, count, values in (
        ("first_trip", "trips", placed.trips),
        ("first_chance", "chances", placed.chances),
    ):
        ends = np.cumsum(placed.entries[count])
        assert placed.entries[first].tolist() == [0, *ends[:-1]]
        assert ends[-1] == len(values)
