"""What mixes the tokens of a sequence in a layer: its weights, and what it keeps of every token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specopt.instances.checkpoints.weights import Weight, matrix, vector


@dataclass(frozen=True, kw_only=True)
class Mixer:
    """Attention, or what stands in its place: its tensors listed, and what it keeps.

    Parameters
    ----------
    name
        What checkpoints call it.
    what
        What sets it apart from attention with grouped heads.
    window
        Tokens after which `window_values` stop growing; None: there are none.
    tensors
        Its tensors.
    kv_values, window_values
        Values cached per token, for all of the context and up to the window.
    state_values
        Values kept per sequence, whatever its length.
    values_per_pair
        Multiplications per new token and token attended to; where an indexer chooses, as if all tokens were chosen.
    """

    name: str = "self_attn"
    what: str = ""
    window: int | None = None
    tensors: tuple[Weight, ...] = ()
    kv_values: int = 0
    window_values: int = 0
    state_values: int = 0
    values_per_pair: int = 0

    @property
    def has_cache(self) -> bool:
        """Whether anything is kept of every token."""
        return self.kv_values + self.window_values > 0

    def weights(self) -> Iterator[Weight]:
        """Yield all tensors."""
        yield from self.tensors


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

    def __post_init__(self) -> None:
        kept = 2 * self.kv_heads * self.head_dim if self.own_cache else 0
        grows = self.window is None
        object.__setattr__(self, "kv_values", kept if grows else 0)
        object.__setattr__(self, "window_values", 0 if grows else kept)
        object.__setattr__(self, "values_per_pair", 2 * self.heads * self.head_dim)

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
