"""Feed-forward networks of a layer: dense, and experts to which a router sends each token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from specopt.instances.checkpoints.weights import Weight, matrix, under, vector


@dataclass(frozen=True, kw_only=True)
class FeedForward:
    """Two matrices, or three with a gate."""

    hidden: int
    ffn: int
    gated: bool = True
    bias: bool = False

    def weights(self) -> Iterator[Weight]:
        """Yield matrices and biases."""
        for name in ("gate_proj", "up_proj") if self.gated else ("up_proj",):
            yield from matrix(name, self.ffn, self.hidden, self.bias)
        yield from matrix("down_proj", self.hidden, self.ffn, self.bias)


@dataclass(frozen=True, kw_only=True)
class Experts:
    """A router, the experts that it chooses from, and one network that takes every token.

    Parameters
    ----------
    network
        One expert; where its hidden size is not the layer's, projections lead there and back.
    hidden
        The hidden size of the layer.
    count, per_token
        How many there are, and how many a token is routed to.
    shared_ffn
        Dimension of the shared experts together; 0: there are none.
    shared_gate
        Whether what they give is weighted.
    inner_norm
        Whether there is a norm before the projection back.
    name, router, shared
        What checkpoints call all of it, the router, and the shared experts.
    router_bias
        Whether it has a bias.
    scaled
        Whether its input and its output have learned scales (Gemma 4).
    """

    network: FeedForward
    hidden: int
    count: int
    per_token: int
    shared_ffn: int
    shared_gate: bool
    inner_norm: bool
    name: str
    router: str
    shared: str
    router_bias: bool
    scaled: bool

    def weights(self) -> Iterator[Weight]:
        """Yield router, experts and shared network."""
        hidden, inner = self.hidden, self.network.hidden
        yield Weight(name=self.router, shape=(self.count, hidden), role="router")
        if self.router_bias:
            yield vector(f"{self.router}.bias", self.count)
        if self.scaled:
            yield vector(f"{self.router}.scale", hidden)
            yield vector(f"{self.router}.per_expert_scale", self.count)
        for weight in under("experts.0", self.network.weights()):
            yield replace(weight, role="expert", copies=self.count, active=self.per_token)
        if inner != hidden:
            yield Weight(name="routed_expert_down_proj", shape=(inner, hidden), role="router")
            yield Weight(name="routed_expert_up_proj", shape=(hidden, inner), role="router")
        if self.inner_norm:
            yield vector("routed_expert_norm", inner)
        if self.shared_ffn:
            yield from under(self.shared, replace(self.network, hidden=hidden, ffn=self.shared_ffn).weights())
        if self.shared_gate:
            yield Weight(name="shared_expert_gate", shape=(1, hidden), role="router")
