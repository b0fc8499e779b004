"""A family with the setting of paper 3, Sec. V.

OPT-125M drafts for OPT-13B over an uplink that alternates between slow and fast. The paper reports
the two models, the mean uplink rates of two regimes, and the channel model, which is a Markov chain
with a slow and a fast state. The paper does not report the transition probabilities, the uplink
rates of the two states, the timings or the acceptance rates.

This family assumes 5 ms for a draft token and 32 ms for a verification. The acceptance rate at
resolution l is alpha_inf - c TV(q, q_l). In this formula, alpha_inf is the agreement between the
models. The second term is the loss caused by rounding a synthetic softmax distribution q over the
vocabulary to a lattice point q_l. The temperature of q depends on the draft model's confidence
state.
"""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import number, one_of, positive
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
from specopt.models.fields import Floats
from specopt.models.markov_chain import TransitionMatrix

UPLINKS = {"low": 350e3, "high": 4e6}
RESOLUTIONS = (10, 30, 100, 300, 1000)
VOCABULARY = 50272
DECAY = 3.0
"""Exponent with which the probability of a token falls with its rank.

The value applies at temperature 1 and usual confidence. A larger value concentrates the
distribution on fewer tokens.
"""

CONFIDENCE = {"sure": (0.75, 0.95), "usual": (1.0, 0.85), "unsure": (1.5, 0.65)}
"""Temperature factor and agreement alpha_inf between the models for each confidence state."""


def paper_3(
    *,
    regime: str = "low",
    temperature: float = 1.0,
    contrast: float = 10.0,
    low_to_high: float = 0.1,
    high_to_low: float = 0.1,
    keep_confidence: float = 0.8,
    loss: float = 0.8,
    min_draft: int = 1,
    max_draft: int = 32,
    seed: int = 0,
) -> DraftControlProblem:
    """Two states of the uplink combined with three confidence states of the draft model.

    This is the setting of paper 3, Sec. V, with a free downlink.

    Parameters
    ----------
    regime
        Mean uplink rate: "low" (350 kbit/s) or "high" (4 Mbit/s).
    temperature
        Sampling temperature. Higher temperatures flatten the distributions, which lowers acceptance
        at coarse resolutions.
    contrast
        Ratio of the fast to the slow uplink rate.
    low_to_high
        Transition probability from the slow to the fast uplink, per iteration.
    high_to_low
        Transition probability from the fast to the slow uplink, per iteration.
    keep_confidence
        Probability that the confidence state stays the same. Otherwise, the other two states are
        equally likely.
    loss
        Acceptance c lost per unit of total variation between a distribution and its quantised form.
    min_draft
        Minimum draft length.
    max_draft
        Maximum draft length.
    seed
        Not used; the instance is deterministic.
    """
    one_of("regime", regime, UPLINKS)
    temperature = positive("temperature", temperature)
    contrast = positive("contrast", contrast)
    low_to_high = number("low_to_high", low_to_high, above=0, high=1)
    high_to_low = number("high_to_low", high_to_low, above=0, high=1)
    keep_confidence = number("keep_confidence", keep_confidence, 0, 1)
    loss = number("loss", loss, 0, 1)
    fast_share = low_to_high / (low_to_high + high_to_low)
    slow = UPLINKS[regime] / (1.0 - fast_share + contrast * fast_share)
    rates = [
        [
            max(0.0, alpha - loss * lattice_distance(_softmax(temperature * factor), value))
            for value in RESOLUTIONS
        ]
        for factor, alpha in CONFIDENCE.values()
    ]
    channel = np.array([[1.0 - low_to_high, low_to_high], [high_to_low, 1.0 - high_to_low]])
    confidence = np.full((3, 3), (1.0 - keep_confidence) / 2.0)
    np.fill_diagonal(confidence, keep_confidence)
    return DraftControlProblem(
        notes=(
            "states: slow uplink and a sure, usual, unsure draft model; then the fast uplink and"
            " the same"
        ),
        vocabulary_size=VOCABULARY,
        draft_seconds_per_token=5e-3,
        verify_seconds=32e-3,
        draft_lengths=(min_draft, max_draft),
        resolutions=np.array(RESOLUTIONS),
        states=tuple(
            ChannelState(uplink_bits_per_second=uplink, acceptance_rates=np.array(row))
            for uplink in (slow, slow * contrast)
            for row in rates
        ),
        transition=TransitionMatrix(np.kron(channel, confidence)),
    )


def _softmax(temperature: float) -> Floats:
    """Return a synthetic next-token distribution with logits that fall linearly in the log rank."""
    logits = -DECAY * np.log(np.arange(1, VOCABULARY + 1)) / temperature
    weights: Floats = np.exp(logits - logits.max())
    weights /= weights.sum()
    return weights


def lattice_distance(distribution: Floats, resolution: int) -> float:
    """Return the total variation distance from a distribution to the nearest lattice point (Eq. 5).

    The probabilities are rounded down to multiples of 1 / `resolution`, and the remaining units go
    to the largest remainders. This yields the nearest point in total variation.
    """
    scaled = resolution * distribution
    units = np.floor(scaled)
    left = resolution - int(units.sum())
    order = np.argsort(units - scaled, kind="stable")
    units[order[:left]] += 1.0
    return float(np.abs(units - scaled).sum()) / (2.0 * resolution)
