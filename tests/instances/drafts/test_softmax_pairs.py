"""Synthetic pairs of distributions, and what quantising does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt.instances.drafts.softmax_pairs import QuantisationFigures, quantisation_figures, softmax_pairs
from specopt.models.codes.lattice import distribution_bits, nearest_counts
from specopt.models.codes.support_code import encode_support
from specopt.models.errors import InvalidInput

RESOLUTIONS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)


@pytest.fixture(scope="module", params=[1.0, 1.5])
def figures(request: pytest.FixtureRequest) -> QuantisationFigures:
    """Figures of a real vocabulary at two temperatures."""
    return quantisation_figures(softmax_pairs(32, temperature=request.param), RESOLUTIONS)


def entropy(laws: Any) -> float:
    """Return the mean Shannon entropy in nats."""
    return float(-(laws * np.log(np.maximum(laws, 1e-300))).sum(axis=1).mean())


def test_pairs() -> None:
    """Tests that pairs are distributions, depend on the seed alone, and sharpen with a lower temperature."""
    pairs = softmax_pairs(6, vocabulary_size=500, seed=1)
    assert pairs.server_laws.shape == pairs.draft_laws.shape == (6, 500)
    assert pairs.server_laws.sum(axis=1) == pytest.approx(np.ones(6))
    assert pairs.server_laws.min() >= 0.0 and pairs.draft_laws.min() >= 0.0
    again, other = softmax_pairs(6, vocabulary_size=500, seed=1), softmax_pairs(6, vocabulary_size=500, seed=2)
    assert (again.draft_laws == pairs.draft_laws).all() and (other.draft_laws != pairs.draft_laws).any()
    means = [entropy(softmax_pairs(6, vocabulary_size=500, temperature=t).server_laws) for t in (0.2, 0.5, 1.0, 2.0)]
    assert means == sorted(means)


def test_without_noise_all_is_accepted() -> None:
    """Tests that a draft model equal to the server is accepted always, and that noise costs acceptance."""
    rates = [
        float(quantisation_figures(softmax_pairs(6, noise=noise), [10]).unquantised_rates.mean())
        for noise in (0.0, 0.4, 1.6)
    ]
    assert rates[0] == pytest.approx(1.0, abs=1e-12) and rates == sorted(rates, reverse=True)


def test_quantise_then_sample_keeps_the_law(figures: QuantisationFigures) -> None:
    """Tests that, as in Figure 3, sample-then-quantise loses p at every resolution, quantise-then-sample at none."""
    assert figures.quantise_then_sample_errors.max() < 1e-14
    assert figures.sample_then_quantise_errors.mean(axis=1).min() > 1e-3
    assert (figures.sample_then_quantise_errors <= figures.distances + 1e-13).all()


def test_finer_is_closer(figures: QuantisationFigures) -> None:
    """Tests that acceptance rises to the unquantised rate, and distance and error fall, as the lattice gets finer."""
    assert (np.diff(figures.acceptance_rates.mean(axis=1)) > 0.0).all()
    assert (np.diff(figures.distances.mean(axis=1)) < 0.0).all()
    assert (np.diff(figures.sample_then_quantise_errors.mean(axis=1)) < 0.0).all()
    assert figures.acceptance_rates.mean(axis=1)[-1] < figures.unquantised_rates.mean()
    gap = figures.unquantised_rates - figures.acceptance_rates
    assert (np.abs(gap) <= figures.distances + 1e-13).all()  # the triangle inequality


def test_the_line_fits_better_than_a_hyperbola(figures: QuantisationFigures) -> None:
    """Tests that alpha_inf - c TV(q, q-hat) leaves less than half of what alpha_inf (1 - c / l) leaves."""
    model = figures.fitted_acceptance()
    rates = figures.acceptance_rates.mean(axis=1)
    line = model.predict(figures.distances.mean(axis=1)) - rates
    # the hyperbola may choose both its numbers freely
    shape = np.c_[np.ones(len(RESOLUTIONS)), 1.0 / np.array(RESOLUTIONS)]
    hyperbola = shape @ np.linalg.lstsq(shape, rates, rcond=None)[0] - rates
    assert 2.0 * np.sqrt(np.mean(line**2)) < np.sqrt(np.mean(hyperbola**2))
    assert 0.0 < model.loss < 1.0
    assert model.unquantised_rate == pytest.approx(figures.unquantised_rates.mean(), abs=0.02)


def test_support_code_is_shorter(figures: QuantisationFigures) -> None:
    """Tests that support codewords are shorter on average than Eq. 6's, but for the coarsest lattice."""
    assert (figures.support_bits.mean(axis=1) < figures.lattice_bits)[1:].all()
    assert figures.lattice_bits.tolist() == [distribution_bits(r, 50_272) for r in RESOLUTIONS]


def test_lengths_are_those_of_codewords() -> None:
    """Tests that the bits reported are those of encoded distributions; a fifth of Eq. 6's at temperature 0.5."""
    pairs = softmax_pairs(4, temperature=0.5)
    figures = quantisation_figures(pairs, [100])
    counts = nearest_counts(pairs.draft_laws, 100)
    assert figures.support_bits[0].tolist() == [len(encode_support(row)) for row in counts]
    assert 5 * figures.support_bits.mean() < figures.lattice_bits[0]


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
