"""A user's deployment, described by two models, their measured passes, and optional data.

The optional data consists of a trace, a link, memory sizes, acceptance rates, and a fleet of
clients.
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
from specopt.models.pass_time import PassTime, Which

DRAFTS = 8
"""Draft length for which a constant acceptance rate is fitted to the acceptance by position.

If fewer positions are known, the largest known draft length is used instead.
"""


def room(memory_bytes: float, tokens: float, *models: ModelConfig) -> int:
    """Return how many requests of a given length fit in memory alongside the models' weights."""
    free = memory_bytes - sum(model.weight_bytes for model in models)
    each = max(1.0, tokens) * max(1.0, sum(model.kv_bytes_per_token for model in models))
    return max(0, int(free / each))


@dataclass(frozen=True, kw_only=True, eq=False)
class Fleet:
    """The clients of a deployment, their devices, and the prices of machines.

    A field is None if its value is unknown.

    Parameters
    ----------
    device
        Runtimes of the draft model on a client's device.
    clients
        Number of clients that decode concurrently.
    seconds_per_token
        Maximum time per token, in seconds.
    price_per_second
        Price per second of a verifier unit, followed by the price of a drafting server if such
        servers may be used.
    watts
        Idle and busy power of a verifier unit, in watts, followed by the power of a drafting device
        if that power is known.
    """

    device: Passes | None = None
    clients: int | None = None
    seconds_per_token: float | None = None
    price_per_second: tuple[float, ...] | None = None
    watts: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployment:
    """The data about a user's deployment.

    A field is None if its value is unknown.

    Parameters
    ----------
    draft
        Config of the draft model.
    verify
        Config of the verify model.
    passes
        Measured passes of both models.
    trace
        Trace of requests.
    link
        Link between the drafting and the verifying machine.
    memory_bytes
        Memory size, in bytes, of the machine whose memory is limited in the kind of problem being
        built.
    acceptance
        Acceptance by position or by draft length.
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
        """Constant acceptance rate that yields as many tokens per step as the known acceptance.

        Raises
        ------
        InvalidInput
            If the acceptance of a single draft is unknown.
        """
        if self.acceptance is None:
            return None
        most = (
            DRAFTS
            if self.acceptance.max_drafts is None
            else min(DRAFTS, self.acceptance.max_drafts)
        )
        if most < 1:
            raise InvalidInput(
                "acceptance: the value for draft length 1 is missing; give it as well"
            )
        return rate_that_yields(float(self.acceptance.expected_tokens(most)[-1]), most)

    @property
    def rows(self) -> str:
        """Name of the trace and range of its rows that are used, as shown in a list of sources."""
        assert self.trace is not None, "there is a trace"
        return (
            f"{self.trace.source}, rows {self.trace.start} to"
            f" {self.trace.start + len(self.trace) - 1}"
        )

    def context(self, passes: PassTime) -> float:
        """Return a typical request's number of cached tokens, clipped to the measured range."""
        measured = passes.contexts
        if self.trace is None:
            return measured[len(measured) // 2] if measured else 0.0
        mean = float(np.mean(self.trace.input_tokens + 0.5 * self.trace.output_tokens))
        return round(float(np.clip(mean, measured[0], measured[-1]))) if measured else round(mean)

    def seconds_per_token(self, passes: PassTime, which: Which = "fitted") -> float:
        """Return the duration, in seconds, of a pass over one token with a typical context."""
        seconds = passes.seconds(np.ones(1), np.ones(1), np.array([self.context(passes)]), which)
        return float(np.reshape(seconds, -1)[0])
