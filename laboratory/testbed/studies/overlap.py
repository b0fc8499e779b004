"""ROUGE-2 of texts, the overlap of their pairs of neighbouring words (paper 3, Figure 3a)."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

_WORD = re.compile(r"\w+")


def rouge_2(text: str, reference: str) -> float:
    """Return the harmonic mean of the shares of each text's word pairs that the other text
    contains, or 0 if a text has none.

    Examples
    --------
    >>> rouge_2("the cat sat down", "The cat sat on it.")
    0.5714285714285714
    """
    ours, theirs = (
        Counter(pairwise(words)) for words in map(_WORD.findall, (text.lower(), reference.lower()))
    )
    total = ours.total() + theirs.total()
    return 2.0 * (ours & theirs).total() / total if total else 0.0
