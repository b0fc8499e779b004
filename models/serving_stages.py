"""Seconds of the two stages of serving latency: drafting and verifying a batch in one decoding step
(paper 1).

How the stages of a step follow each other (Eq. 20) is here too.

The tokens that a batch of b tasks has reached before the step: its longest prompt in the first one,
I_m + (n - 1) L in step n of a static batch. Shapes broadcast: one row per batch, one column per
step.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from specopt.models.decoder import Decoder
from specopt.models.fields import Floats
from specopt.models.pass_time import Runtime, pass_seconds

Mechanism = Literal["pipelined", "sequential", "autoregressive"]


def draft_seconds(
    draft: Decoder,
    runtime: Runtime,
    size: Any,
    reached: Floats,
    length: int,
    prefill: Any,
    unseen: Any = 1.0,
) -> Floats:
    """Return T^d (Eq. 13 and 19): `length` passes of one token, but for the first one.

    That takes in what the draft model has not seen: where `prefill` the prompt, else one token
    unless given.
    """
    seconds = np.zeros_like(reached)
    for i in range(1, length + 1):
        first = np.asarray(prefill) & (i == 1)
        new = np.where(first, reached, unseen if i == 1 else 1.0)
        total = np.where(first, reached, reached + (i - 1))
        seconds += pass_seconds(draft, runtime, size, new, total, 1)
    return seconds


def verify_seconds(
    verify: Decoder, runtime: Runtime, size: Any, reached: Floats, length: int, prefill: Any
) -> Floats:
    """Return T^v (Eq. 14 and 18): one pass over the guesses and the last token; where `prefill`,
    over the prompt.
    """
    new = np.where(prefill, reached + length, 1.0 + length)
    return pass_seconds(verify, runtime, size, new, reached + length, 1 + length)


def stage_ends(
    mechanism: Mechanism, draft_done: Any, done: Any, T_d: Any, T_v: Any, larger: Any = np.maximum
) -> tuple[Any, Any]:
    """Return when the draft and the verify stage have ended with one more batch of a step (Eq. 20).

    Arrays, or numbers with `larger` for them.
    """
    if mechanism == "pipelined":
        draft_done = draft_done + T_d
        return draft_done, larger(draft_done, done) + T_v
    return draft_done, done + T_d + T_v


def too_much(needed: float, which: str, limit: float) -> str:
    """Return the sentence about a batch that does not fit."""
    return (
        f"needs {needed / 1e9:.3f} GB of {which}-model memory, {limit / 1e9:.3f} GB are available"
    )
