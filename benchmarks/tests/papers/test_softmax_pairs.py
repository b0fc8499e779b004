"""Synthetic pairs of distributions, and what quantising does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from papers.lattice_points import nearest_counts, quantised
from papers.quantised_outputs import quantised_outputs
from papers.softmax_pairs import SoftmaxPairs, softmax_pairs
from papers.speculative_sampling import acceptance_rate, total_variation

from specopt.models.codes.lattice import distribution_bits
from specopt.models.errors import InvalidInput
from testbed.codes.quantised_acceptance import QuantisedAcceptance
from testbed.codes.support_code import encode_support
from testbed.codes.support_lengths import counts_bits

pytestmark = pytest.mark.nightly

RESOLUTIONS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)


Figures = dict[str, Any]


@pytest.fixture(scope="module", params=[1.0, 1.5])
def figures(request: pytest.FixtureRequest) -> Figures:
    """What quantising does to pairs over a real vocabulary, at two temperatures; shape (positions,
    resolutions).
    """
    pairs: SoftmaxPairs = softmax_pairs(32, temperature=request.param)
    counts = [nearest_counts(pairs.draft_laws, resolution) for resolution in RESOLUTIONS]
    found: Figures = quantised_outputs(pairs.server_laws, pairs.draft_laws, RESOLUTIONS)
    return found | {
        "distance": np.stack(
            [total_variation(pairs.draft_laws, quantised(one)) for one in counts], axis=1
        ),
        "bits": np.stack([counts_bits(one) for one in counts], axis=1),
        "unquantised_rate": acceptance_rate(pairs.server_laws, pairs.draft_laws),
    }


def entropy(laws: Any) -> float:
    """Return the mean Shannon entropy in nats."""
    return float(-(laws * np.log(np.maximum(laws, 1e-300))).sum(axis=1).mean())


def test_pairs() -> None:
    """Tests that pairs are distributions, depend on the seed alone, and sharpen with a lower
    temperature.
    """
    assert len(softmax_pairs(vocabulary_size=2).server_laws) == 32
    pairs = softmax_pairs(6, vocabulary_size=500, seed=1)
    assert pairs.server_laws.shape == pairs.draft_laws.shape == (6, 500)
    assert pairs.server_laws.sum(axis=1) == pytest.approx(np.ones(6))
    assert pairs.server_laws.min() >= 0.0 and pairs.draft_laws.min() >= 0.0
    again, other = (
        softmax_pairs(6, vocabulary_size=500, seed=1),
        softmax_pairs(6, vocabulary_size=500, seed=2),
    )
    assert (again.draft_laws == pairs.draft_laws).all() and (
        other.draft_laws != pairs.draft_laws
    ).any()
    means = [
        entropy(softmax_pairs(6, vocabulary_size=500, temperature=t).server_laws)
        for t in (0.2, 0.5, 1.0, 2.0)
    ]
    assert means == sorted(means)


def test_without_noise_all_is_accepted() -> None:
    """Tests that a draft model equal to the server is accepted always, and that noise costs
    acceptance.
    """
    drawn = [softmax_pairs(6, noise=noise) for noise in (0.0, 0.4, 1.6)]
    rates = [float(acceptance_rate(pairs.server_laws, pairs.draft_laws).mean()) for pairs in drawn]
    assert rates[0] == pytest.approx(1.0, abs=1e-12) and rates == sorted(rates, reverse=True)


@pytest.mark.nightly
def test_quantise_then_sample_keeps_the_law(figures: Figures) -> None:
    """Tests that, as in Figure 3, sample-then-quantise loses p at every resolution,
    quantise-then-sample at none.
    """
    assert figures["kept_error"].max() < 1e-14
    assert figures["lost_error"].mean(axis=0).min() > 1e-3
    assert (figures["lost_error"] <= figures["distance"] + 1e-13).all()


def test_finer_is_closer(figures: Figures) -> None:
    """Tests that acceptance rises to the unquantised rate, and distance and error fall, as the
    lattice gets finer.
    """
    rates, distances, errors = (
        figures[name].mean(axis=0) for name in ("kept_rate", "distance", "lost_error")
    )
    assert (np.diff(rates) > 0.0).all() and rates[-1] < figures["unquantised_rate"].mean()
    assert (np.diff(distances) < 0.0).all() and (np.diff(errors) < 0.0).all()
    gap = figures["unquantised_rate"][:, None] - figures["kept_rate"]
    assert (np.abs(gap) <= figures["distance"] + 1e-13).all()  # the triangle inequality


def test_the_line_fits_better_than_a_hyperbola(figures: Figures) -> None:
    """Tests that alpha_inf - c TV(q, q-hat) leaves less than half of what alpha_inf (1 - c / l)
    leaves.
    """
    rates, distances = figures["kept_rate"].mean(axis=0), figures["distance"].mean(axis=0)
    unquantised = float(figures["unquantised_rate"].mean())
    model = QuantisedAcceptance.fit([*distances, 0.0], [*rates, unquantised])
    line = model.predict(distances) - rates
    # the hyperbola may choose both its numbers freely
    shape = np.c_[np.ones(len(RESOLUTIONS)), 1.0 / np.array(RESOLUTIONS)]
    hyperbola = shape @ np.linalg.lstsq(shape, rates, rcond=None)[0] - rates
    assert 2.0 * np.sqrt(np.mean(line**2)) < np.sqrt(np.mean(hyperbola**2))
    assert 0.0 < model.loss < 1.0
    assert model.unquantised_rate == pytest.approx(unquantised, abs=0.02)


def test_support_code_is_shorter(figures: Figures) -> None:
    """Tests that support codewords are shorter on average than Eq. 6's, but for the coarsest
    lattice.
    """
    lattice = [distribution_bits(resolution, 50_272) for resolution in RESOLUTIONS]
    assert (figures["bits"].mean(axis=0) < lattice)[1:].all()


def test_lengths_are_those_of_codewords() -> None:
    """Tests that the bits reported are those of encoded distributions; a fifth of Eq. 6's at
    temperature 0.5.
    """
    counts = nearest_counts(softmax_pairs(4, temperature=0.5).draft_laws, 100)
    bits = counts_bits(counts)
    assert bits.tolist() == [len(encode_support(row)) for row in counts]
    assert 5 * bits.mean() < distribution_bits(100, 50_272)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count": 0}, "count: expected an integer >= 1"),
        ({"vocabulary_size": 1}, "vocabulary_size: expected an integer >= 2"),
        ({"temperature": 0.0}, "temperature: expected a finite number > 0"),
        ({"temperature": float("nan")}, "temperature: expected a finite number > 0"),
        ({"noise": -1.0}, "noise: expected a finite number >= 0"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    """Tests that parameters out of range are refused."""
    with pytest.raises(InvalidInput, match=message):
        softmax_pairs(**parameters)
