"""A language model that is a table: the logits behind a token depend on that token alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats, Ints


@dataclass
class BigramCache:
    """Only the lengths matter; the tokens are there to check them."""

    tokens: Ints
    lengths: Ints


class Bigrams:
    """Logits of the next token by the last one, shape (vocabulary, vocabulary)."""

    def __init__(self, table: Floats) -> None:
        self.table = table

    def new_cache(self, batch: int, room: int) -> BigramCache:
        """Return an empty cache."""
        return BigramCache(np.full((batch, room), -1), np.zeros(batch, dtype=np.int64))

    def logits(self, tokens: Ints, counts: Ints, cache: BigramCache, scored: int) -> Floats:
        """Score the last tokens of each row."""
        for row, (line, count) in enumerate(zip(tokens, counts, strict=True)):
            start = cache.lengths[row]
            cache.tokens[row, start : start + count] = line[:count]
        cache.lengths = cache.lengths + counts
        places = cache.lengths[:, None] - scored + np.arange(scored)
        found: Floats = self.table[cache.tokens[np.arange(len(tokens))[:, None], places]]
        return found
