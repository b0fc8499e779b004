"""The state monitor: Eq. 1-2 by hand, knots that move least and stay in order, outliers, state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.instances.prompt_chunking.workload import FIGURE_1, paper_4_workload
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import CloudDelay
from specopt.models.prompt_chunking.workload import Rounds, Scheme
from specopt.online.prompts import KNOTS, PromptMonitor
from specopt.solvers.prompt_chunking.simulate import run_once

BATCHES = st.lists(st.tuples(st.floats(0.0, 6000.0), st.floats(0.0, 2.0)), min_size=1, max_size=30)


def test_equations_1_and_2_by_hand() -> None:
    """Tests that mu and g at mu are the paper's moving averages."""
    monitor = PromptMonitor(FIGURE_1, pinned="smoothed", outlier_limit=None)
    mu = 10.0
    monitor.observe_batch(10.0, 0.03)
    expected = 0.8 * FIGURE_1.at(10.0) + 0.2 * 0.03
    assert monitor.cloud_delay.at(10.0) == pytest.approx(expected)
    for tokens, seconds in ((100.0, 0.05), (20.0, 0.02), (700.0, 0.3)):
        before = monitor.cloud_delay
        monitor.observe_batch(tokens, seconds)
        mu = 0.8 * mu + 0.2 * tokens
        assert monitor.background_tokens == pytest.approx(mu)
        assert monitor.cloud_delay.at(mu) == pytest.approx(0.8 * before.at(mu) + 0.2 * seconds)


def test_two_knots_move_by_the_smallest_change() -> None:
    """Tests that no other change of the two knots pins g with a smaller sum of squares."""
    delay = CloudDelay(
        tokens=np.array([0.0, 100.0, 200.0, 300.0]), seconds=np.array([0.1, 0.2, 0.3, 0.4])
    )
    monitor = PromptMonitor(delay, smoothing=0.0, outlier_limit=None)
    monitor.observe_batch(125.0, 0.24)
    change = monitor.cloud_delay.seconds - delay.seconds
    assert change[[0, 3]].tolist() == [0.0, 0.0]
    assert 0.75 * change[1] + 0.25 * change[2] == pytest.approx(0.24 - 0.225)
    for shift in (-1e-3, 1e-3):  # along the line of equal g(125)
        other = (change[1] + shift) ** 2 + (change[2] - 3.0 * shift) ** 2
        assert other > change[1] ** 2 + change[2] ** 2


@given(
    BATCHES, st.sampled_from(["observed", "smoothed"]), st.sampled_from([None, 4.0]), st.booleans()
)
def test_g_stays_in_order(
    batches: list[tuple[float, float]], pinned: str, limit: float | None, empty: bool
) -> None:
    """Tests that g is non-negative and non-decreasing whatever comes, and pinned where the plain
    averages say.
    """
    monitor = PromptMonitor(None if empty else FIGURE_1, pinned=pinned, outlier_limit=limit)  # type: ignore[arg-type]
    known = not empty
    for tokens, seconds in batches:
        before = monitor.cloud_delay if known else None
        monitor.observe_batch(tokens, seconds)
        known = True
        g = monitor.cloud_delay  # checks order and sign itself
        assert np.isfinite(g.seconds).all()
        if limit is None and before is not None:
            place = tokens if pinned == "observed" else monitor.background_tokens
            target = 0.8 * before.at(place) + 0.2 * seconds
            assert g.at(place) == pytest.approx(target, rel=1e-9, abs=1e-9)


def test_empty_start() -> None:
    """Tests that the first batch makes g, that nothing is invented before, and devices stand in for
    each other.
    """
    monitor = PromptMonitor()
    assert monitor.background_tokens == 0.0
    for call in (
        lambda: monitor.cloud_delay,
        lambda: monitor.problem("a", 10, bytes_per_token=1.0, pipeline_length=1),
        lambda: monitor.parallel_steps("a", 1, bytes_per_token=1.0),
    ):
        with pytest.raises(InvalidInput, match=r"observe a (batch|device) first"):
            call()
    monitor.observe_batch(50.0, 0.03)
    assert monitor.cloud_delay.tokens.tolist() == list(KNOTS)
    assert set(monitor.cloud_delay.seconds.tolist()) == {0.03}
    monitor.observe_device("a", uplink_bytes_per_second=4e6, downlink_bytes_per_second=8e6)
    monitor.observe_device("b", uplink_bytes_per_second=8e6, draft_seconds=0.01)
    assert monitor.device("new", "uplink_bytes_per_second") == 6e6
    problem = monitor.problem(
        "b", 351, bytes_per_token=8192.0, pipeline_length=4, wait="overlap", max_chunks=5
    )
    assert problem.uplink_bytes_per_second == 8e6
    assert problem.downlink_bytes_per_second == 8e6
    assert problem.background_tokens == 50.0
    assert (problem.wait, problem.max_chunks) == ("overlap", 5)
    assert monitor.devices == ("a", "b")
    monitor.forget("a")
    monitor.forget("never seen")
    assert monitor.device("new", "uplink_bytes_per_second") == 8e6


def test_learns_g_from_noisy_batches() -> None:
    """Tests that from nothing g is learned within a few percent where batches are, outliers and
    all.
    """
    random = np.random.default_rng(0)
    monitor = PromptMonitor()
    plain = PromptMonitor(outlier_limit=None)
    for _ in range(3000):
        tokens = float(random.uniform(0.0, 600.0))
        seconds = FIGURE_1.at(tokens) * (1.0 + 0.03 * random.standard_normal())
        seconds *= 20.0 if random.random() < 0.01 else 1.0
        monitor.observe_batch(tokens, seconds)
        plain.observe_batch(tokens, seconds)
    for tokens in (40.0, 150.0, 300.0, 500.0):
        assert monitor.cloud_delay.at(tokens) == pytest.approx(FIGURE_1.at(tokens), rel=0.1)
    worst = [
        max(abs(one.cloud_delay.at(m) / FIGURE_1.at(m) - 1.0) for m in (40.0, 150.0, 300.0, 500.0))
        for one in (monitor, plain)
    ]
    assert worst[0] < worst[1]


def test_a_simulated_cloud_is_learned() -> None:
    """Tests that a monitor that sees the batches of a simulated run knows mu by Eq. 1, and g where
    batches are.
    """
    workload = paper_4_workload(requests_per_second=9.0)
    scheme = Scheme(name="", rounds=Rounds.one_by_one())
    log = run_once(workload, scheme, requests=150, warm_up_requests=0, log_batches=4000).log
    monitor, mu = PromptMonitor(), 0.0
    for index, (_, prompts, rounds, seconds) in enumerate(log.tolist()):
        monitor.observe_batch(prompts + rounds, 4.0 * seconds)
        mu = prompts + rounds if index == 0 else 0.8 * mu + 0.2 * (prompts + rounds)
    assert monitor.background_tokens == pytest.approx(mu)
    sizes = log["prompt_tokens"] + log["round_tokens"]
    for tokens in np.quantile(sizes, [0.2, 0.5, 0.8]).tolist():
        assert monitor.cloud_delay.at(tokens) == pytest.approx(FIGURE_1.at(tokens), rel=0.05)


def test_one_outlier_hardly_moves_and_a_change_is_followed() -> None:
    """Tests that a single reading of a hundredth hardly counts, and that a lasting fall to half is
    followed.
    """
    monitor = PromptMonitor()
    for index in range(30):
        monitor.observe_device("a", uplink_bytes_per_second=1e7 * (1.0 + 0.02 * (-1) ** index))
    monitor.observe_device("a", uplink_bytes_per_second=1e5)
    assert monitor.device("a", "uplink_bytes_per_second") > 0.97e7
    for _ in range(15):
        monitor.observe_device("a", uplink_bytes_per_second=5e6)
    assert monitor.device("a", "uplink_bytes_per_second") == pytest.approx(5e6, rel=0.1)


@pytest.mark.parametrize(
    "options",
    [{"smoothing": 1.0}, {"pinned": "here"}, {"outlier_limit": 0.5}, {"draft_seconds": -1.0}],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    """Tests that messages name the argument."""
    (name,) = options
    with pytest.raises(InvalidInput, match=name):
        PromptMonitor(**options)
