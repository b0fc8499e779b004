"""The effect of quantising draft distributions on the output, by position (paper 3, Fig. 3-4).

Q-S samples a draft from the quantised distribution q-hat and verifies with it. S-Q samples it from
q and verifies with q-hat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.lattice_points import nearest_counts, quantised
from papers.speculative_sampling import acceptance_rate, output_law, total_variation
from specopt.models.fields import Floats


def quantised_outputs(p: Any, q: Any, resolutions: Sequence[int]) -> dict[str, Floats]:
    """Return acceptance rates, errors and entropies of each position.

    Parameters
    ----------
    p
        Distributions of the server at n positions, shape (n, V).
    q
        Distributions of the draft model, of the same shape.
    resolutions
        R resolutions of the lattice.

    Returns
    -------
    By name, shape (n,): "draft_peak", the draft model's largest probability, "verify_entropy" and
    "draft_entropy" in nats. Shape (n, R): acceptance rates "kept_rate" of Q-S and "lost_rate" of
    S-Q; "impossible", the part of the latter with q-hat = 0. Also of shape (n, R), for the laws of
    the output: "kept_error" and "lost_error", total variation to the server's law; "kept_entropy"
    and "lost_entropy".
    """
    p, q = np.asarray(p), np.asarray(q)
    found = {"draft_peak": q.max(axis=1), "verify_entropy": entropy(p), "draft_entropy": entropy(q)}
    columns: dict[str, list[Floats]] = {}
    for resolution in resolutions:
        q_hat = quantised(nearest_counts(q, resolution))
        kept, lost = output_law(p, q_hat, q_hat), output_law(p, q, q_hat)
        for name, column in {
            "kept_rate": acceptance_rate(p, q_hat),
            "lost_rate": acceptance_rate(p, q, q_hat),
            "impossible": (q * ((q_hat == 0.0) & (p > 0.0))).sum(axis=1),
            "kept_error": total_variation(p, kept),
            "lost_error": total_variation(p, lost),
            "kept_entropy": entropy(kept),
            "lost_entropy": entropy(lost),
        }.items():
            columns.setdefault(name, []).append(column)
    return found | {name: np.stack(each, axis=1) for name, each in columns.items()}


def entropy(laws: Floats) -> Floats:
    """Return the entropy of distributions in nats, shape (...)."""
    logarithms = np.log(laws, out=np.zeros_like(laws), where=laws > 0)
    found: Floats = -(laws * logarithms).sum(axis=-1)
    return found
