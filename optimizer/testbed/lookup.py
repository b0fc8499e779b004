"""Drafts without a draft model: what followed the longest repetition of a text's end (n-gram drafting).

A law of such a draft is certain. A text whose end repeats nothing has its last token drafted over and over, which costs
what any rejected drafts cost; engines draft nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specopt.models.fields import Ints
from specopt.testbed.decoding import Drafts, Sampling, Verdict

LONGEST, SHORTEST = 4, 2
"""Tokens of an end that is looked for, as the engine of the laboratory is set."""


class LookupDrafter:
    """A stand-in for `specopt.testbed.decoding.Drafter`.

    Parameters
    ----------
    vocabulary
        Tokens of the verify model.
    prompts
        Tokens of each task of the batch.
    sampling
        How tokens are chosen.
    """

    def __init__(self, vocabulary: int, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        self.vocabulary, self.sampling = vocabulary, sampling
        self.tokens = [list(prompt) for prompt in prompts]

    def draft(self, length: int) -> Drafts:
        """Draft so many tokens for each sequence."""
        rows = [continued(tokens, length) for tokens in self.tokens]
        drawn: Ints = np.array(rows, dtype=np.int64).reshape(len(rows), length)
        if self.sampling.temperature == 0.0 or not length:
            return Drafts(tokens=drawn, laws=None)
        laws = np.zeros((*drawn.shape, self.vocabulary))
        np.put_along_axis(laws, drawn[:, :, None], 1.0, axis=-1)
        return Drafts(tokens=drawn, laws=laws)

    def settle(self, drafts: Ints, verdict: Verdict) -> None:
        """Keep what was accepted and the verify model's own token."""
        for tokens, row, accepted, own in zip(self.tokens, drafts, verdict.accepted, verdict.tokens, strict=True):
            tokens += [*row[:accepted].tolist(), int(own)]


def continued(tokens: Sequence[int], length: int) -> list[int]:
    """Return what followed the latest earlier occurrence of the longest end that has one, repeated as often as needed.

    Examples
    --------
    >>> continued([7, 8, 9, 1, 7, 8], 4)
    [9, 1, 7, 8]
    >>> continued([1, 2, 3], 2)
    [3, 3]
    """
    text = list(tokens)
    for size in range(min(LONGEST, len(text) - 1), SHORTEST - 1, -1):
        end = text[-size:]
        for start in range(len(text) - size - 1, -1, -1):
            if text[start : start + size] == end:
                period = text[start + size :]
                return [period[place % len(period)] for place in range(length)]
    return [text[-1]] * length
