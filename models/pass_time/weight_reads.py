"""The bytes of weights that a forward pass reads: all dense ones, and those of the experts to which
its tokens are routed.

The experts of a pass depend on the routing of its tokens. With k of E experts per token and n
tokens routed uniformly and independently, a layer reads E (1 - (1 - k/E)^n) distinct experts on
average. Routing that prefers some experts reads fewer, and so do tokens of one sequence, which
resemble each other. The expectation is therefore an upper estimate for engines. The limits in
`WeightReads.limits` always hold: between k and min(E, k n) experts.
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
        Number of layers.
    experts
        Number E of experts per layer.
    experts_per_token
        Number k of experts to which a token is routed.
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
        """Return the mean number of distinct experts of a layer that `tokens` uniformly routed
        tokens need.
        """
        integer("tokens", tokens, 0)
        return self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens)

    def expert_limits(self, tokens: int) -> tuple[int, int]:
        """Return the minimum and maximum number of distinct experts of a layer that `tokens`
        tokens need.
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
        Bytes that every pass reads: attention, dense and shared networks, norms and the output
        matrix. The table of input embeddings is not included, because a pass reads one row per
        token.
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
        """Return the mean bytes that a pass over `tokens` tokens reads; a verification has b (1 +
        K) tokens.

        The value is exact for dense models. For routed experts it assumes uniform independent
        routing.
        """
        return self.dense_bytes + sum(
            group.layers * group.expert_bytes * group.expected_experts(tokens)
            for group in self.experts
        )

    def limits(self, tokens: int) -> tuple[float, float]:
        """Return the minimum and maximum bytes that such a pass reads, for any routing."""
        fewest = most = self.dense_bytes
        for group in self.experts:
            low, high = group.expert_limits(tokens)
            fewest += group.layers * group.expert_bytes * low
            most += group.layers * group.expert_bytes * high
        return fewest, most
