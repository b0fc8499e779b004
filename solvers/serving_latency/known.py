"""What the kernels of known output lengths work on, for one speculation length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.serving_latency.prepare import Prepared


@dataclass(frozen=True)
class Stages:
    """A prepared problem at one speculation length, as plain arrays.

    Parameters
    ----------
    prepared, length
        What was prepared, and l.
    steps
        Decoding steps of every task, in sorted order.
    unit
        Operations per task, shape (K, 5): first and second draft pass of step 1, first draft pass of step 2, verify
        passes of steps 1 and 2.
    rates
        What is added per further draft pass, per further step of a draft pass, per further step of the verify pass.
    """

    prepared: Prepared
    length: int
    steps: Ints
    unit: Floats
    rates: Floats

    @property
    def overlap(self) -> bool:
        """Whether the stages of different batches overlap."""
        return self.prepared.mechanism == "pipelined"

    @property
    def arrays(self) -> tuple[int, Floats, Floats, Floats, Floats]:
        """What every kernel takes for stage times."""
        return self.length, self.unit, self.rates, self.prepared.draft_pieces, self.prepared.verify_pieces


def stages(prepared: Prepared, length: int) -> Stages:
    """Return the arrays of one speculation length (Eq. 13-14)."""
    tokens = prepared.tokens_per_step(length)
    inputs = prepared.inputs
    token, pair, logit = prepared.draft
    seen = inputs + length
    verify_token, verify_pair, verify_logit = prepared.verify
    logits = verify_logit * (1 + length)
    unit = np.column_stack(
        [
            token * inputs + pair * inputs**2 + logit,
            token + pair * (inputs + 1) + logit,
            token + pair * (inputs + tokens) + logit,
            verify_token * seen + verify_pair * seen**2 + logits,
            (1 + length) * (verify_token + verify_pair * (seen + tokens)) + logits,
        ]
    )
    rates = np.array([pair, pair * tokens, (1 + length) * verify_pair * tokens])
    return Stages(prepared, length, prepared.steps_of(prepared.outputs, length), np.ascontiguousarray(unit), rates)
