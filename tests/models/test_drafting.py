"""Closed forms and logs of drafting against enumeration, written straight from the definitions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import InvalidInput
from specopt.models.drafting import (
    BinaryPredictor,
    DraftLog,
    Scores,
    first_flag_round,
)

units = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0))


def enumerated(
    alpha: float, most: int, f: float, g: float, h: float, sends: bool
) -> tuple[float, float, float]:
    """E[N], E[W] and E[D] over all outcomes and all predictor bits (Eq. 22-26), each token judged
    on its own.
    """
    accepted = wasted = drafted = 0.0
    for A in itertools.product((0, 1), repeat=most):
        R = A.index(0) if 0 in A else most  # the first rejection, from 0
        for Z in itertools.product((0, 1), repeat=most):
            weight = 1.0
            for i in range(most):
                weight *= alpha if A[i] else 1.0 - alpha
                one = (1.0 - g) if i < R else f if i == R else h
                weight *= one if Z[i] else 1.0 - one
            K = Z.index(0) if 0 in Z else most
            D = min(K + 1, most)
            sent = D if sends else K
            accepted += weight * min(sent, R)
            wasted += weight * max(0, sent - R)
            drafted += weight * D
    return accepted, wasted, drafted


@settings(max_examples=60)
@given(units, st.integers(1, 4), units, units, units, st.booleans())
def test_first_flag_is_the_enumeration(
    alpha: float, most: int, f: float, g: float, h: float, sends: bool
) -> None:
    """Tests that the closed forms are the means over every outcome and every predictor bit."""
    predictor = BinaryPredictor(false_accept=f, false_reject=g, goes_on_after=h)
    found = first_flag_round(alpha, most, predictor, sends_flagged=sends)
    expected = enumerated(alpha, most, f, g, h, sends)
    assert [found.accepted, found.wasted, found.drafted] == pytest.approx(expected, abs=1e-12)
    assert found.sent == pytest.approx(expected[0] + expected[1], abs=1e-12)


@given(units, st.integers(1, 10), st.tuples(units, units), units, units)
def test_theorem_1_holds_for_equal_g_and_h(
    alpha: float, most: int, false_alarms: tuple[float, float], g: float, h: float
) -> None:
    """Tests that fewer false alarms waste no more, if g and h are equal, and that Eq. 31 bounds the
    waste.
    """
    low, high = sorted(false_alarms)
    waste = [
        first_flag_round(
            alpha, most, BinaryPredictor(false_accept=f, false_reject=g, goes_on_after=h)
        ).wasted
        for f in (low, high)
    ]
    assert waste[0] <= waste[1] + 1e-12
    bound = (1.0 - alpha) * low * sum((most - j) * alpha**j for j in range(most))
    assert waste[0] <= bound + 1e-9


def test_theorem_1_fails_as_stated() -> None:
    """Tests that of two predictors the one with the lower false-alarm rate can waste more, although
    Eq. 31 is lower.
    """
    many = BinaryPredictor(false_accept=1.0, false_reject=1.0, goes_on_after=0.0)
    few = BinaryPredictor(false_accept=0.75, false_reject=0.0, goes_on_after=1.0)
    assert few.false_accept < many.false_accept
    assert first_flag_round(0.5, 2, many).wasted == 0.5
    assert first_flag_round(0.5, 2, few).wasted == 0.9375


def log(outcomes: list[int], **more: Any) -> DraftLog:
    """Return a log of tokens with one feature."""
    features = {"features": np.zeros((len(outcomes), 1))}
    return DraftLog(outcomes=np.array(outcomes), **(features | more))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BinaryPredictor(false_accept=1.5, false_reject=0.0), "false_accept"),
        (
            lambda: Scores(
                accepted=np.array([0.5, 0.4]), first_rejection=np.ones(2) / 2, after=np.ones(2) / 2
            ),
            "sum",
        ),
        (
            lambda: Scores(
                accepted=np.ones(1), first_rejection=np.ones(2) / 2, after=np.ones(2) / 2
            ),
            "entries",
        ),
        (
            lambda: first_flag_round(1.2, 3, BinaryPredictor(false_accept=0.5, false_reject=0.0)),
            "acceptance_rate",
        ),
        (lambda: log([0, 0, 0], features=np.zeros(3)), "features"),
        (lambda: log([0], features=np.array([[np.nan]])), r"features\[0\]"),
        (lambda: log([2, 0]), "outcomes"),
        (lambda: log([1, 0], rounds=np.zeros(3, int)), "rounds"),
        (lambda: log([1, 0], names=("a", "b")), "names"),
        (lambda: log([1]).split(), "rounds"),
        (lambda: log([1]).split(1.0), "share"),
        (lambda: log([-1]).acceptance_rate, "outcomes"),
    ],
)
def test_bad_input_names_the_field(build: object, message: str) -> None:
    """Tests that a value outside its domain is refused with the name of its field."""
    assert callable(build)
    with pytest.raises(InvalidInput, match=message):
        build()


def test_split_keeps_rounds_together() -> None:
    """Tests that no round is in both parts of a log, and that the log's arrays cannot be
    changed.
    """
    rounds = np.repeat(np.arange(50), 4)
    log = DraftLog(
        features=np.arange(200.0).reshape(-1, 1),
        outcomes=np.tile([1, 1, 0, -1], 50),
        rounds=rounds,
        names=("x",),
    )
    first, second = log.split(0.6, seed=1)
    assert first.rounds is not None and second.rounds is not None
    assert len(first) == 120 and len(second) == 80
    assert not set(first.rounds) & set(second.rounds)
    assert log.acceptance_rate == pytest.approx(2 / 3)
    assert not log.features.flags.writeable


def test_a_cut_adds_up_the_bins() -> None:
    """Tests that scores cut at a bin accept from it on, as probabilities whatever rounding adds."""
    scores = Scores(
        accepted=np.array([0.1, 0.2, 0.7]),
        first_rejection=np.array([0.5, 0.3, 0.2]),
        after=np.array([0.6, 0.3, 0.1]),
    )
    cut = scores.cut(1)
    assert (cut.false_accept, cut.false_reject, cut.after) == pytest.approx((0.5, 0.1, 0.4))
    over = np.array([0.6, 0.3, 0.1 + 1e-12])
    assert Scores(accepted=over, first_rejection=over, after=over).cut(0).false_accept == 1.0
