"""What is known of one client and of a saturated unit where passes cost so much per sequence, as
properties of optima.

Letters: K draft tokens of a round, L tokens that it yields on average, t_v and t_d seconds of a
verify and of a draft pass per sequence, R the round trip, r the least rate (arXiv 2606.25091).
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from helpers.untyped import solve
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_instances.placement import one_of_each, passes

VERIFY = st.floats(0.005, 0.1)
SHARES = st.floats(0.02, 1.0)
ACCEPTANCE = st.floats(0.05, 1.0)
LENGTHS = st.integers(1, 5)
UPLINKS = st.just(0.0) | st.floats(1e-5, 0.005)
WAYS = st.just(0.0) | st.floats(1e-3, 3.0)
EXACT = 1e-8


def best(
    verify: float,
    acceptance: float,
    most: int,
    *,
    beside: float | None = None,
    device: float | None = None,
    trip: Any = 0.0,
    uplink: float = 0.0,
    ahead: bool = False,
    least: float = 0.0,
) -> Any:
    """Solve for one client, or with a least rate for the clients that one unit carries; None: this
    is no place.
    """
    problem = one_of_each(
        "capacity" if least else "goodput",
        most,
        overlap=ahead,
        bits_per_draft_token=1.0,
        verifier={"passes": passes(sequence=verify)},
        drafter={"beside": {} if beside is None else {"v": passes(sequence=beside)}},
        classes=[
            {
                "clients": 1,
                "context_tokens": 100,
                "acceptance": {"d": acceptance},
                "min_tokens_per_second": least,
                "round_trip_seconds": {"v": trip},
                "device_seconds_per_token": {} if device is None else {"d": device},
                **({"uplink_bits_per_second": 1.0 / uplink} if uplink else {}),
            }
        ],
    )
    result = solve(problem, "refined")
    if least:
        assert (
            math.floor(result.bound * (1 + EXACT)) == result.objective
        )  # a whole number: that proves it
    else:
        assert result.status == "optimal"
    return result


def used(result: Any) -> tuple[str, bool, int]:
    """Return place, overlap and draft length of the client."""
    group = result.plan.groups[0]
    one = group.clients[0]
    return (
        one.place,
        one.overlap,
        group.beside.draft_tokens if group.beside else one.draft_tokens or 0,
    )


def tokens(acceptance: float, k: int) -> float:
    """L."""
    return sum(acceptance**j for j in range(k + 1))


@given(VERIFY, SHARES, st.floats(1.0, 3.0), st.floats(0.001, 0.3), ACCEPTANCE, LENGTHS)
def test_beside_beats_a_device_that_drafts_no_faster(
    verify: float, share: float, slower: float, trip: float, acceptance: float, most: int
) -> None:
    """Tests that a device that drafts no faster, and not ahead, is never the place where beside is
    one.
    """
    beside = share * verify
    both = best(verify, acceptance, most, beside=beside, device=slower * beside, trip=trip)
    assert used(both)[0] in ("none", "beside")
    rates = [
        1 / verify,
        *(tokens(acceptance, k) / (verify + k * beside) for k in range(1, most + 1)),
    ]
    assert both.objective == pytest.approx(max(rates), rel=EXACT)


@given(VERIFY, SHARES, SHARES, WAYS, UPLINKS, ACCEPTANCE, LENGTHS)
def test_ahead_beats_beside_only_on_short_trips(
    verify: float,
    share: float,
    faster: float,
    way: float,
    uplink: float,
    acceptance: float,
    most: int,
) -> None:
    """Tests that drafting ahead is the best only if trip and uplink are shorter than drafting
    beside.
    """
    beside = share * verify
    trip = way * most * beside
    found = best(
        verify,
        acceptance,
        most,
        beside=beside,
        device=faster * beside,
        trip=trip,
        uplink=uplink,
        ahead=True,
    )
    place, ahead, k = used(found)
    if place == "device" and ahead:
        assert trip + k * uplink <= k * beside * (1 + EXACT)


@given(VERIFY, st.floats(0.1, 0.9), st.floats(0.05, 0.95), LENGTHS, st.booleans())
def test_ahead_beats_beside_whenever_it_never_waits(
    verify: float, share: float, near: float, most: int, short: bool
) -> None:
    """Tests that the trip alone decides where all drafts hold and are ready before the answer is
    there.
    """
    beside = share * verify
    trip = most * beside * (near if short else 1 / near)
    found = best(
        verify, 1.0, most, beside=beside, device=verify / (most + 1), trip=trip, ahead=True
    )
    assert used(found) == (("device", True, most) if short else ("beside", False, most))


@given(VERIFY, SHARES, WAYS, UPLINKS, ACCEPTANCE, LENGTHS)
def test_a_device_beats_no_drafts_if_verifying_takes_long(
    verify: float, share: float, way: float, uplink: float, acceptance: float, most: int
) -> None:
    """Tests that drafts from the device pay exactly if t_v > (trip + uplink + drafting) / (L - 1)
    for some K.
    """
    device, trip = share * verify, way * verify
    away = {k: trip + k * uplink + k * device for k in range(1, most + 1)}
    limits = [away[k] / (tokens(acceptance, k) - 1) for k in away]
    assume(all(abs(verify - limit) > 1e-6 * verify for limit in limits))
    found = best(verify, acceptance, most, device=device, trip=trip, uplink=uplink)
    assert (used(found)[0] == "device") == any(verify > limit for limit in limits)
    rates = [1 / verify, *(tokens(acceptance, k) / (verify + away[k]) for k in away)]
    assert found.objective == pytest.approx(max(rates), rel=EXACT)


@settings(max_examples=25)
@given(VERIFY, SHARES, SHARES, WAYS, st.floats(4.0, 12.0), ACCEPTANCE, LENGTHS)
def test_clients_of_a_saturated_unit(
    verify: float,
    share: float,
    device: float,
    way: float,
    patience: float,
    acceptance: float,
    most: int,
) -> None:
    """Tests that a saturated unit carries L / (r (t_v + K t_d)) clients beside, L / (r t_v)
    elsewhere.
    """
    beside, drafting, trips = (
        share * verify,
        device * verify,
        [0.9 * way * verify, 1.1 * way * verify],
    )
    rate = tokens(acceptance, most) / (
        way * verify + most * drafting + patience * verify
    )  # saturated at this rate
    carried = [tokens(acceptance, k) / (rate * verify) for k in range(most + 1)]
    with_drafts = [limit / (1 + k * share) for k, limit in enumerate(carried)]
    assume(all(abs(limit - round(limit)) > 1e-6 for limit in (*carried, *with_drafts)))
    assume(max(with_drafts) >= 1)
    near = best(verify, acceptance, most, beside=beside, least=rate)
    far = best(verify, acceptance, most, device=drafting, trip=trips, least=rate)
    assert near.objective == math.floor(max(with_drafts))
    assert far.objective == math.floor(max(carried))
