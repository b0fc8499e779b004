"""What a user has: two models with measured passes, and perhaps a trace, a link, memory and rates
of acceptance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.instances.deployment.link import Link
from specopt.instances.deployment.passes import Passes
from specopt.instances.traces.trace import Trace
from specopt.models.acceptance import rate_that_yields
from specopt.models.acceptance_lengths import Acceptance
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import PassTime

DRAFTS = 8
"""Length at which one rate stands for acceptance by position, unless fewer are known."""


def room(memory_bytes: float, tokens: float, *models: ModelConfig) -> int:
    """Return how many requests of so many tokens fit beside the weights of models that cache
    them.
    """
    free = memory_bytes - sum(model.weight_bytes for model in models)
    each = max(1.0, tokens) * max(1.0, sum(model.kv_bytes_per_token for model in models))
    return max(0, int(free / each))


@dataclass(frozen=True, kw_only=True, eq=False)
class Fleet:
    """Clients, their devices, and the prices of machines; None means unknown.

    Parameters
    ----------
    device
        How long passes of the draft model take on a client's device.
    clients
        That decode at a time.
    seconds_per_token
        The most that a token may take.
    price_per_second
        Of a unit of the verifier, and of a drafting server if there may be some.
    watts
        Of a unit of the verifier, idle and busy, and of a device that drafts if that is known.
    """

    device: Passes | None = None
    clients: int | None = None
    seconds_per_token: float | None = None
    price_per_second: tuple[float, ...] | None = None
    watts: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployment:
    """What a user has; None: it is not known.

    Parameters
    ----------
    draft, verify
        The configs of both models.
    passes
        How long their passes take.
    trace
        Requests.
    link
        Between the machine that drafts and the one that verifies.
    memory_bytes
        Of the machine whose memory a kind of problem asks for.
    acceptance
        By position or length.
    fleet
        Clients, their devices, and the prices of machines.
    """

    draft: ModelConfig
    verify: ModelConfig
    passes: Passes
    trace: Trace | None = None
    link: Link | None = None
    memory_bytes: float | None = None
    acceptance: Acceptance | None = None
    fleet: Fleet = Fleet()

    @property
    def rate(self) -> float | None:
        """The one acceptance rate that yields as many tokens in a step as what is known by position
        or length.

        Raises
        ------
        InvalidInput
            If nothing is known of a single draft.
        """
        if self.acceptance is None:
            return None
        most = (
            DRAFTS
            if self.acceptance.max_drafts is None
            else min(DRAFTS, self.acceptance.max_drafts)
        )
        if most < 1:
            raise InvalidInput("acceptance: expected what a step with one draft yields, too")
        return rate_that_yields(float(self.acceptance.expected_tokens(most)[-1]), most)

    @property
    def rows(self) -> str:
        """What the trace is called in a list of sources."""
        assert self.trace is not None, "there is a trace"
        return (
            f"{self.trace.source}, rows {self.trace.start} to"
            f" {self.trace.start + len(self.trace) - 1}"
        )

    def context(self, passes: PassTime) -> float:
        """Return the cached tokens of a typical request, as far as passes were measured with
        them.
        """
        measured = passes.contexts
        if self.trace is None:
            return measured[len(measured) // 2] if measured else 0.0
        mean = float(np.mean(self.trace.input_tokens + 0.5 * self.trace.output_tokens))
        return round(float(np.clip(mean, measured[0], measured[-1]))) if measured else round(mean)
