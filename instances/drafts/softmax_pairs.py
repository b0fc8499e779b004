"""Synthetic pairs of next-token distributions of a server's and a draft model, and what quantising does to them.

They stand in for OPT-13B and OPT-125M, which paper 3 runs and which are not here. Logits fall with the logarithm of a
token's rank (Zipf's law) and scatter around that; positions differ in how steeply, as confident and open positions of
a text do; the draft model's logits are the server's and noise. Constants are chosen so that at temperature 1 a
distribution has a few nats of entropy and drafts are accepted three times in four. Nothing is fitted to a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import integer, number, positive, random_generator
from specopt.models.codes.lattice import distribution_bits, nearest_counts, quantised
from specopt.models.codes.quantised_acceptance import QuantisedAcceptance
from specopt.models.codes.support_code import counts_bits
from specopt.models.fields import MAX_TOKENS, Floats, Ints
from specopt.models.speculative_sampling import acceptance_rate, output_law, total_variation

OPT_VOCABULARY_SIZE = 50_272

ZIPF_EXPONENT = 1.8
"""What a logit falls by from one token to the one of e times its rank."""

SCATTER = 1.2
"""Standard deviation of the server's logits around that."""

STEEPNESS_SCATTER = 0.35
"""Standard deviation of the logarithm of the factor that a position multiplies the server's logits by."""


@dataclass(frozen=True, eq=False)
class SoftmaxPairs:
    """Next-token distributions of both models at the same positions.

    Parameters
    ----------
    server_laws, draft_laws
        p and q, shape (n, V); rows sum to 1.
    """

    server_laws: Floats
    draft_laws: Floats


@dataclass(frozen=True, eq=False)
class QuantisationFigures:
    """What quantising to lattices does to pairs of distributions; arrays have shape (R, n), resolutions by positions.

    Parameters
    ----------
    resolutions
        l of each lattice, shape (R,).
    acceptance_rates
        1 - TV(p, q-hat): the probability that a draft is accepted, quantised before it is drawn.
    distances
        TV(q, q-hat).
    quantise_then_sample_errors
        TV distance of the output law from p when drafts are drawn from q-hat: 0 but for rounding (Proposition 1).
    sample_then_quantise_errors
        The same when drafts are drawn from q and verified with q-hat.
    support_bits
        Bits of the support code.
    lattice_bits
        Bits of Eq. 6, shape (R,).
    unquantised_rates
        1 - TV(p, q), shape (n,).
    """

    resolutions: Ints
    acceptance_rates: Floats
    distances: Floats
    quantise_then_sample_errors: Floats
    sample_then_quantise_errors: Floats
    support_bits: Ints
    lattice_bits: Ints
    unquantised_rates: Floats

    def fitted_acceptance(self) -> QuantisedAcceptance:
        """Return the line of the mean acceptance rate in the mean distance; the rate unquantised is one of its points.

        Raises
        ------
        InvalidInput
            If no resolution changes any distribution.
        """
        return QuantisedAcceptance.fit(
            np.append(self.distances.mean(axis=1), 0.0),
            np.append(self.acceptance_rates.mean(axis=1), self.unquantised_rates.mean()),
        )


def softmax_pairs(
    count: int = 32,
    *,
    vocabulary_size: int = OPT_VOCABULARY_SIZE,
    temperature: float = 1.0,
    noise: float = 0.8,
    seed: int = 0,
) -> SoftmaxPairs:
    """Draw pairs of distributions.

    One seed draws one set of logits: only the softmax depends on the temperature.

    Parameters
    ----------
    count
        n, the number of positions.
    vocabulary_size
        V >= 2.
    temperature
        What logits are divided by, for both models; > 0.
    noise
        Standard deviation of the draft model's logits around the server's.
    seed
        Seed of `numpy.random.default_rng`.

    Raises
    ------
    InvalidInput
        If a parameter is outside its domain.
    """
    count = integer("count", count, 1, MAX_TOKENS)
    vocabulary_size = integer("vocabulary_size", vocabulary_size, 2, MAX_TOKENS)
    temperature, noise = positive("temperature", temperature), number("noise", noise, 0)
    rng = random_generator(seed)
    steepness = np.exp(STEEPNESS_SCATTER * rng.standard_normal((count, 1)))
    # ranks in a new order at every position, because which token is likely depends on the text
    ranks = rng.permuted(np.tile(np.arange(1.0, vocabulary_size + 1.0), (count, 1)), axis=1)
    server = steepness * (SCATTER * rng.standard_normal((count, vocabulary_size)) - ZIPF_EXPONENT * np.log(ranks))
    draft = server + noise * rng.standard_normal((count, vocabulary_size))
    return SoftmaxPairs(_softmax(server / temperature), _softmax(draft / temperature))


def quantisation_figures(pairs: SoftmaxPairs, resolutions: Sequence[int]) -> QuantisationFigures:
    """Return what quantising to lattices does to pairs of distributions.

    Parameters
    ----------
    pairs
        The distributions.
    resolutions
        l of each lattice, each >= 1.

    Raises
    ------
    InvalidInput
        If a resolution is outside its domain.
    """
    p, q = pairs.server_laws, pairs.draft_laws
    vocabulary_size = p.shape[1]
    shape = (len(resolutions), len(p))
    rates, distances, kept, lost = (np.empty(shape) for _ in range(4))
    bits = np.empty(shape, dtype=np.int64)
    for row, resolution in enumerate(resolutions):
        counts = nearest_counts(q, resolution)
        q_hat = quantised(counts)
        rates[row] = acceptance_rate(p, q_hat)
        distances[row] = total_variation(q, q_hat)
        kept[row] = total_variation(p, output_law(p, q_hat, q_hat))
        lost[row] = total_variation(p, output_law(p, q, q_hat))
        bits[row] = counts_bits(counts)
    return QuantisationFigures(
        resolutions=np.array(resolutions, dtype=np.int64),
        acceptance_rates=rates,
        distances=distances,
        quantise_then_sample_errors=kept,
        sample_then_quantise_errors=lost,
        support_bits=bits,
        lattice_bits=np.array([distribution_bits(resolution, vocabulary_size) for resolution in resolutions]),
        unquantised_rates=acceptance_rate(p, q),
    )


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    laws: Floats = weights / weights.sum(axis=1, keepdims=True)
    return laws
