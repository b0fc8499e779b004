"""The number of bytes of weights that a forward pass reads from memory.

A pass reads all dense weights, and the weights of the experts to which its tokens are routed. If
each of n tokens is routed to k of E experts, uniformly and independently, a layer reads
E (1 - (1 - k/E)^n) distinct experts on average. The number is lower if routing prefers some
experts, or if tokens of the same sequence are routed similarly. The mean for uniform routing is
therefore an upper estimate for real engines. `WeightReads.limits` computes bounds for any routing,
because a pass reads at least k and at most min(E, k n) experts per layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import NonNegative, PositiveInt, check


@dataclass(frozen=True, kw_only=True)
class ExpertLayers:
    """A group of mixture-of-experts layers in which all routed experts have the same size.

    Parameters
    ----------
    layers
        Number of layers in the group.
    experts
        Number E of experts per layer.
    experts_per_token
        Number k of experts to which each token is routed.
    expert_bytes
        Size of each expert in bytes.

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
        """Return the mean number of distinct experts per layer to which `tokens` tokens are routed.
        Routing is assumed to be uniform and independent.
        """
        integer("tokens", tokens, 0)
        return self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens)

    def expert_limits(self, tokens: int) -> tuple[int, int]:
        """Return the minimum and maximum number of distinct experts per layer to which `tokens`
        tokens can be routed.
        """
        integer("tokens", tokens, 0)
        fewest = self.experts_per_token if tokens else 0
        return fewest, min(self.experts, self.experts_per_token * tokens)


@dataclass(frozen=True, kw_only=True)
class WeightReads:
    """The sizes of a model's weights, from which the bytes read by a forward pass are computed.

    Parameters
    ----------
    dense_bytes
        Number of bytes that every pass reads, for attention, dense and shared networks, norms and
        the output matrix. Input embeddings are not included, because a pass reads only one row per
        token.
    experts
        Groups of layers with routed experts.

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
        """Return the mean number of bytes of weights that a pass over `tokens` tokens reads.

        A verification pass over b sequences with K draft tokens each has b (1 + K) tokens. The
        result is exact for dense models. For routed experts, routing is assumed to be uniform and
        independent.
        """
        return self.dense_bytes + sum(
            group.layers * group.expert_bytes * group.expected_experts(tokens)
            for group in self.experts
        )

    def limits(self, tokens: int) -> tuple[float, float]:
        """Return lower and upper bounds on the number of bytes of weights that a pass over `tokens`
        tokens reads. The bounds hold for any routing.
        """
        fewest = most = self.dense_bytes
        for group in self.experts:
            low, high = group.expert_limits(tokens)
            fewest += group.layers * group.expert_bytes * low
            most += group.layers * group.expert_bytes * high
        return fewest, most
