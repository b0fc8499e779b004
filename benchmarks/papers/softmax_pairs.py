"""Synthetic pairs of next-token distributions of a server's and a draft model.

They replace OPT-13B and OPT-125M of paper 3, which were not run. Logits fall with the logarithm of
a token's rank (Zipf's law) and scatter around this line. The slope differs between positions, as
confident and open positions of a text do. The draft model's logits are the server's plus noise. The
constants are chosen so that at temperature 1 a distribution has a few nats of entropy and three of
four drafts are accepted. Nothing is fitted to a model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import integer, number, positive, random_generator
from specopt.models.fields import MAX_TOKENS, Floats

OPT_VOCABULARY_SIZE = 50_272

ZIPF_EXPONENT = 1.8
"""Decrease of a logit when the rank of the token grows by a factor of e."""

SCATTER = 1.2
"""Standard deviation of the server's logits around this line."""

STEEPNESS_SCATTER = 0.35
"""Standard deviation of the logarithm of the factor on the server's logits at a position."""


@dataclass(frozen=True, eq=False)
class SoftmaxPairs:
    """Next-token distributions of both models at the same positions.

    Parameters
    ----------
    server_laws
        Distributions p of the server, shape (n, V); rows sum to 1.
    draft_laws
        Distributions q of the draft model, of the same shape.
    """

    server_laws: Floats
    draft_laws: Floats


def softmax_pairs(
    count: int = 32,
    *,
    vocabulary_size: int = OPT_VOCABULARY_SIZE,
    temperature: float = 1.0,
    noise: float = 0.8,
    seed: int = 0,
) -> SoftmaxPairs:
    """Draw pairs of distributions.

    A seed determines the logits; only the softmax depends on the temperature.

    Parameters
    ----------
    count
        Number n of positions.
    vocabulary_size
        V >= 2.
    temperature
        Divisor of the logits of both models, > 0.
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
    server = steepness * (
        SCATTER * rng.standard_normal((count, vocabulary_size)) - ZIPF_EXPONENT * np.log(ranks)
    )
    draft = server + noise * rng.standard_normal((count, vocabulary_size))
    return SoftmaxPairs(_softmax(server / temperature), _softmax(draft / temperature))


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    laws: Floats = weights / weights.sum(axis=1, keepdims=True)
    return laws
