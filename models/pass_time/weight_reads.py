"""The bytes of weights that a forward pass reads: all dense ones, and the experts that its tokens
are routed to.

Which experts a pass needs depends on how its tokens are routed. With k of E experts per token and n
tokens routed uniformly and independently, a layer reads E (1 - (1 - k/E)^n) distinct experts on
average. Routing that prefers some experts, and tokens of one sequence, which resemble each other,
read fewer: the expectation is an estimate from above of what engines read. What always holds is
`WeightReads.limits`: between k and min(E, k n) experts.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import NonNegative, PositiveInt, check


@dataclass(frozen=True, kw_only=True)
class ExpertLayers:
    """Layers with routed experts of one kind.

    Parameters
    ----------
    layers
        How many there are.
    experts, experts_per_token
        Experts of a layer (E), and those that a token is routed to (k).
    expert_bytes
        Bytes of one expert.

    Examples
    --------
    >>> layers = ExpertLayers(layers=1, experts=8, experts_per_token=2, expert_bytes=1.0)
    >>> [layers.expected_experts(n) for n in (0, 1, 2)]
    [0.0, 2.0, 3.5]
    """

    layers: PositiveInt
    experts: PositiveInt
    experts_per_token: PositiveInt
    expert_bytes: NonNegative

    def __post_init__(self) -> None:
        check(self)
        if self.experts_per_token > self.experts:
            raise InvalidInput(
                f"experts_per_token: expected at most experts = {self.experts}, got"
                f" {self.experts_per_token}"
            )

    def expected_experts(self, tokens: int) -> float:
        """Return the distinct experts of a layer that `tokens` tokens need on average, routed
        uniformly.
        """
        integer("tokens", tokens, 0)
        return self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens)

    def expert_limits(self, tokens: int) -> tuple[int, int]:
        """Return the fewest and the most distinct experts of a layer that `tokens` tokens can
        need.
        """
        integer("tokens", tokens, 0)
        fewest = self.experts_per_token if tokens else 0
        return fewest, min(self.experts, self.experts_per_token * tokens)


@dataclass(frozen=True, kw_only=True)
class WeightReads:
    """The weights that a pass reads from memory.

    Parameters
    ----------
    dense_bytes
        What every pass reads: attention, dense and shared networks, norms, output matrix; not the
        table of input embeddings, of which a pass reads a row per token.
    experts
        Layers with routed experts.

    Examples
    --------
    >>> experts = ExpertLayers(layers=2, experts=8, experts_per_token=2, expert_bytes=10.0)
    >>> reads = WeightReads(dense_bytes=100.0, experts=(experts,))
    >>> reads.bytes(1), reads.bytes(2), reads.limits(2)
    (140.0, 170.0, (140.0, 180.0))
    """

    dense_bytes: float
    experts: tuple[ExpertLayers, ...] = ()

    def bytes(self, tokens: int) -> float:
        """Return the bytes that a pass over `tokens` tokens, b (1 + K) in a verification, reads on
        average.

        Exact for dense models; for routed experts under uniform independent routing.
        """
        return self.dense_bytes + sum(
            group.layers * group.expert_bytes * group.expected_experts(tokens)
            for group in self.experts
        )

    def limits(self, tokens: int) -> tuple[float, float]:
        """Return the fewest and the most bytes that such a pass can read, whatever the routing."""
        fewest = most = self.dense_bytes
        for group in self.experts:
            low, high = group.expert_limits(tokens)
            fewest += group.layers * group.expert_bytes * low
            most += group.layers * group.expert_bytes * high
        return fewest, most
