"""What mixes the tokens of a sequence in a layer: its weights, and what it keeps of every token.

Heads that share keys and values, latent attention (one compressed vector per token), and linear attention (a state of
fixed size instead of a cache).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from specopt.instances.checkpoints.weights import Weight, matrix, vector


@dataclass(frozen=True, kw_only=True)
class Mixer(ABC):
    """Attention, or what stands in its place.

    Parameters
    ----------
    name
        What checkpoints call it.
    window
        Tokens after which the cache stops growing; None: never.
    """

    name: str = "self_attn"
    window: int | None = None

    @property
    def kv_values(self) -> int:
        """Values cached per token."""
        return 0

    @property
    def state_values(self) -> int:
        """Values kept per sequence, whatever its length."""
        return 0

    @property
    def values_per_pair(self) -> int:
        """Multiplications per new token and token attended to."""
        return 0

    @abstractmethod
    def weights(self) -> Iterator[Weight]:
        """Yield all tensors."""


@dataclass(frozen=True, kw_only=True)
class GroupedAttention(Mixer):
    """Softmax attention whose heads share keys and values in groups.

    Parameters
    ----------
    hidden, heads, kv_heads, head_dim
        The sizes.
    inputs
        Dimension of what queries, keys and values are computed from; 0: the hidden one.
    qkv_bias, output_bias
        Biases on the projections.
    norm_values
        Values per dimension of the norms of queries and keys; 0: there are none.
    gated
        Whether the output is gated by a second half of the queries.
    keys_are_values
        Whether values are computed by the matrix of the keys (both are cached).
    sinks
        Whether each head has a learned logit that attends to nothing.
    own_cache
        Whether there are keys and values at all, not those of an earlier layer.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inputs: int = 0
    qkv_bias: bool = False
    output_bias: bool = False
    norm_values: int = 0
    gated: bool = False
    keys_are_values: bool = False
    sinks: bool = False
    own_cache: bool = True

    @property
    def kv_values(self) -> int:
        """Keys and values of all KV heads."""
        return 2 * self.kv_heads * self.head_dim if self.own_cache else 0

    @property
    def values_per_pair(self) -> int:
        """Scores and weighted values of all heads."""
        return 2 * self.heads * self.head_dim

    def weights(self) -> Iterator[Weight]:
        """Yield projections, their biases and norms."""
        inputs, query, key = self.inputs or self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield from matrix("q_proj", 2 * query if self.gated else query, inputs, self.qkv_bias)
        if self.own_cache:
            yield from matrix("k_proj", key, inputs, self.qkv_bias)
            if not self.keys_are_values:
                yield from matrix("v_proj", key, inputs, self.qkv_bias)
        yield from matrix("o_proj", self.hidden, query, self.output_bias)
        if self.norm_values:
            yield vector("q_norm", self.norm_values, self.head_dim)
            if self.own_cache:
                yield vector("k_norm", self.norm_values, self.head_dim)
        if self.sinks:
            yield vector("sinks", self.heads)


@dataclass(frozen=True, kw_only=True)
class LatentAttention(Mixer):
    """Multi-head latent attention (DeepSeek-V2): one compressed vector per token is cached, and one rotary key.

    Parameters
    ----------
    hidden, heads
        The sizes.
    kv_rank, query_rank
        Dimensions of the compressed keys and values, and queries; 0: queries are not compressed.
    plain_dim, rotary_dim, value_dim
        Dimensions per head of the parts of a key without and with positions, and of a value.
    bias
        Biases on the projections to the compressed vectors and on the output.
    """

    hidden: int
    heads: int
    kv_rank: int
    query_rank: int
    plain_dim: int
    rotary_dim: int
    value_dim: int
    bias: bool = False

    @property
    def kv_values(self) -> int:
        """The compressed vector and the rotary key."""
        return self.kv_rank + self.rotary_dim

    @property
    def values_per_pair(self) -> int:
        """Scores and weighted values, with keys and values expanded."""
        return self.heads * (self.plain_dim + self.rotary_dim + self.value_dim)

    def weights(self) -> Iterator[Weight]:
        """Yield projections down and up, and norms between."""
        query = self.heads * (self.plain_dim + self.rotary_dim)
        if self.query_rank:
            yield from matrix("q_a_proj", self.query_rank, self.hidden, self.bias)
            yield vector("q_a_layernorm", self.query_rank)
            yield from matrix("q_b_proj", query, self.query_rank)
        else:
            yield from matrix("q_proj", query, self.hidden)
        yield from matrix("kv_a_proj_with_mqa", self.kv_values, self.hidden, self.bias)
        yield vector("kv_a_layernorm", self.kv_rank)
        yield from matrix("kv_b_proj", self.heads * (self.plain_dim + self.value_dim), self.kv_rank)
        yield from matrix("o_proj", self.hidden, self.heads * self.value_dim, self.bias)


@dataclass(frozen=True, kw_only=True)
class LinearAttention(Mixer):
    """A gated delta rule behind a short convolution (Qwen3-Next): its state does not grow with the sequence.

    Parameters
    ----------
    hidden, key_heads, value_heads, key_dim, value_dim
        The sizes; dimensions are per head.
    kernel
        Tokens that the convolution sees.
    """

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    name: str = "linear_attn"

    @property
    def _mixed(self) -> int:
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def state_values(self) -> int:
        """A matrix per value head, and the last inputs of the convolution."""
        return self.value_heads * self.key_dim * self.value_dim + self._mixed * (self.kernel - 1)

    def weights(self) -> Iterator[Weight]:
        """Yield projections, convolution, decay and norm."""
        values = self.value_heads * self.value_dim
        yield from matrix("in_proj_qkv", self._mixed, self.hidden)
        yield from matrix("in_proj_z", values, self.hidden)
        yield from matrix("in_proj_b", self.value_heads, self.hidden)
        yield from matrix("in_proj_a", self.value_heads, self.hidden)
        yield vector("conv1d", self._mixed, 1, self.kernel)
        yield vector("dt_bias", self.value_heads)
        yield vector("A_log", self.value_heads)
        yield vector("norm", self.value_dim)
        yield from matrix("out_proj", self.hidden, values)
