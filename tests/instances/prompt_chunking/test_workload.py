"""The settings of paper 4: g of Fig. 1 against what the text says, and rounds of drafts that end by
a threshold.
"""

from __future__ import annotations

import numpy as np
import pytest

from specopt.instances.prompt_chunking.workload import (
    FIGURE_1,
    cloud_delay,
    draft_seconds,
    paper_4_workload,
)
from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking.workload import Rounds


def test_figure_1_is_what_the_text_says() -> None:
    """Tests that g gives 10.1 % at 32 tokens, 0.28 s at 2000, and the 82.3 ms and 6.6 times of
    chunks of 32.
    """
    assert FIGURE_1.at(41) / FIGURE_1.at(10) == pytest.approx(1.101, abs=5e-4)
    assert FIGURE_1.at(2000) == 0.28
    saved = FIGURE_1.at(2009) + 63 * FIGURE_1.at(10) - 63 * FIGURE_1.at(41) - FIGURE_1.at(10)
    assert saved == pytest.approx(0.0823, abs=1e-4)
    assert 63 * FIGURE_1.at(41) / FIGURE_1.at(2009) == pytest.approx(6.6, abs=0.1)


def test_the_larger_model_is_slower() -> None:
    """Tests that g and drafting grow with the parameters, and the scale."""
    share = 37 * (4 * 5120**2 + 3 * 5120 * 13824) / (30 * (4 * 4096**2 + 3 * 4096 * 11008))
    assert cloud_delay("vicuna-13b").seconds == pytest.approx(FIGURE_1.seconds * share)
    assert cloud_delay("vicuna-7b", 0.5).seconds == pytest.approx(FIGURE_1.seconds / 2)
    assert all(
        b > a for a, b in zip(draft_seconds("vicuna-7b"), draft_seconds("vicuna-13b"), strict=True)
    )
    assert draft_seconds("vicuna-7b")[0] > draft_seconds("vicuna-7b", adapter=False)[0]


def test_workloads() -> None:
    """Tests that sizes and scales of both data sets are right, and that another name is refused."""
    workload = paper_4_workload(
        "cnn-dm", link_scale=2.0, pipeline_length=8, local_overhead_seconds=0.0
    )
    assert workload.bytes_per_token == 10240.0
    assert workload.uplink_bytes_per_second.tolist() == [1e7, 2e7]
    assert workload.pipeline_length == 8
    assert paper_4_workload().bytes_per_token == 8192.0
    with pytest.raises(InvalidInput, match="dataset"):
        paper_4_workload("other")


@pytest.mark.parametrize(("mean", "stop"), [(2.06, 0.5), (1.98, 0.3), (1.2, 0.7)])
def test_rounds_by_drawing(mean: float, stop: float) -> None:
    """Tests that the law of rounds is that of drafts drawn token by token."""
    rounds = Rounds.threshold(mean, stop=stop, max_drafted=4, candidates=0.6)
    assert rounds.mean_gained == pytest.approx(mean, abs=1e-6)
    # the acceptance behind the law: drafts of two tokens or more whose first is rejected
    longer = rounds.drafted > 1
    first = longer & (rounds.gained == 1)
    rate = 1.0 - rounds.probabilities[first].sum() / rounds.probabilities[longer].sum()
    random = np.random.default_rng(3)
    seen: dict[tuple[int, int], int] = {}
    for _ in range(40000):
        length = 1
        while length < 4 and random.random() >= stop:
            length += 1
        gained = 1
        for place in range(1, length + 1):
            chance = rate if place < length else (1.0 - stop) * rate
            if random.random() >= chance:
                break
            gained += 1
        seen[length, gained] = seen.get((length, gained), 0) + 1
    for length, gained, probability, hit in zip(
        rounds.drafted.tolist(),
        rounds.gained.tolist(),
        rounds.probabilities.tolist(),
        [] if rounds.hit is None else rounds.hit.tolist(),
        strict=True,
    ):
        assert seen.get((length, gained), 0) / 40000 == pytest.approx(probability, abs=0.01)
        assert hit == (0.6 if gained >= length else 0.0)


def test_unreachable_means_are_refused() -> None:
    """Tests that more tokens than drafts can give, and values outside their domain, are refused."""
    with pytest.raises(InvalidInput, match="mean_gained: expected at most"):
        Rounds.threshold(5.0)
    with pytest.raises(InvalidInput, match="stop"):
        Rounds.threshold(2.0, stop=1.0)
    with pytest.raises(InvalidInput, match="max_drafted"):
        Rounds.threshold(2.0, max_drafted=0)
