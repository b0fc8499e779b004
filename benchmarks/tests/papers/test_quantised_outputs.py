"""What quantising does to outputs, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.quantisation import output_law, quantised
from papers.quantised_outputs import entropy, quantised_outputs

pytestmark = pytest.mark.nightly

P, Q = (
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
    [Fraction(2, 3), Fraction(1, 4), Fraction(1, 12)],
)


def test_against_rational_arithmetic() -> None:
    """Tests that errors and entropies of S-Q are those of its exact law, at resolutions where q-hat
    has zeros, and that Q-S has none and keeps the entropy.
    """
    found = quantised_outputs(np.array([P], dtype=float), np.array([Q], dtype=float), [1, 3, 12])
    for column, resolution in enumerate((1, 3, 12)):
        law = output_law(P, Q, quantised(Q, resolution))
        error = sum(abs(a - b) for a, b in zip(P, law, strict=True)) / 2
        assert found["lost_error"][0, column] == pytest.approx(float(error), abs=1e-15)
        assert found["lost_entropy"][0, column] == pytest.approx(
            float(entropy(np.array(law, dtype=float)))
        )
    assert found["impossible"][0].tolist() == pytest.approx([1 / 3, 1 / 12, 0.0])
    assert (
        found["kept_rate"][0, 2]
        == found["lost_rate"][0, 2]
        == pytest.approx(1 / 2 + 1 / 4 + 1 / 12)
    )
    assert found["kept_error"].max() < 1e-12
    assert found["kept_entropy"] == pytest.approx(np.repeat(found["verify_entropy"][:, None], 3, 1))
    assert found["draft_peak"].tolist() == pytest.approx([2 / 3])
