"""Shapes of decoder models and their costs in parameters, floating-point operations and KV cache.

The costs follow paper 1, Eq. 9-14. A forward pass over m new tokens, with a total of t cached and
new tokens, costs ``flops_per_token * m + flops_per_token_pair * m * t + flops_per_logit * logits``
operations in both cost models:

* `PaperDecoder` counts 4 h1^2 + 2 h1 h2 weights per layer, as paper 1 does, without a gate matrix,
  grouped heads, embeddings or an output head.
* `ExactDecoder` counts the actual matrices of a dense decoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from specopt.models.errors import InvalidInput
from specopt.models.fields import Checked, PositiveInt, check


@dataclass(frozen=True, kw_only=True)
class PaperDecoder(Checked):
    """A decoder in the cost model of paper 1, whose Table I lists examples.

    Parameters
    ----------
    layers
        Number J of decoder blocks.
    hidden
        Hidden dimension h1.
    ffn
        Inner dimension h2 of the feed-forward network.
    name
        Name of the model, used only as a label.

    Examples
    --------
    >>> PaperDecoder(layers=32, hidden=4096, ffn=11008).parameter_bytes  # LLaMA-7B
    10066329600
    """

    layers: PositiveInt
    hidden: PositiveInt
    ffn: PositiveInt
    name: str | None = None

    @property
    def parameter_count(self) -> int:
        """Total number of weights in all layers: J (4 h1^2 + 2 h1 h2)."""
        return self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.ffn)

    @property
    def parameter_bytes(self) -> int:
        """Size of the weights in bytes at FP16 (Eq. 9)."""
        return 2 * self.parameter_count

    @property
    def kv_bytes_per_token(self) -> int:
        """Size of the KV cache per token in bytes at FP16: 4 J h1 (Eq. 10)."""
        return 4 * self.layers * self.hidden

    @property
    def flops_per_token(self) -> int:
        """Floating-point operations per new token, excluding attention scores:
        4 J h1 (2 h1 + h2) (Eq. 11-12).
        """
        return 4 * self.layers * self.hidden * (2 * self.hidden + self.ffn)

    @property
    def flops_per_token_pair(self) -> int:
        """Floating-point operations for attention per pair of a new token and an attended token:
        4 J h1 (Eq. 11-12).
        """
        return 4 * self.layers * self.hidden

    @property
    def flops_per_logit(self) -> int:
        """Floating-point operations of the output head per position. The value is always 0, because
        the paper ignores the output head.
        """
        return 0


@dataclass(frozen=True, kw_only=True)
class ExactDecoder:
    """A dense decoder whose costs are computed from its actual matrices.

    The costs account for grouped heads, gate matrices, embeddings and the output head.

    Parameters
    ----------
    cost
        Cost model, always "exact". In JSON, this field distinguishes the class from `PaperDecoder`.
    layers
        Number of decoder blocks.
    hidden
        Hidden dimension of the model.
    ffn
        Inner dimension of the feed-forward network.
    heads
        Number of query heads.
    kv_heads
        Number of key/value heads.
    head_dim
        Dimension of each head. The product of `heads` and `head_dim` may differ from `hidden`.
    gated
        Whether the feed-forward network has a gate matrix (three matrices instead of two).
    vocabulary
        Number of tokens in the vocabulary.
    tied
        Whether the input and output embeddings share one matrix.
    bytes_per_value
        Number of bytes per weight and per cached value.
    name
        Name of the model, used only as a label.
    """

    mark: ClassVar[str] = "cost"

    cost: Literal["exact"] = field(default="exact", metadata={"always": True})
    layers: PositiveInt
    hidden: PositiveInt
    ffn: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    gated: bool
    vocabulary: PositiveInt
    tied: bool
    bytes_per_value: PositiveInt = 2
    name: str | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.heads % self.kv_heads:
            raise InvalidInput(
                f"kv_heads: expected a divisor of heads = {self.heads}, got {self.kv_heads}"
            )

    @property
    def weights_per_layer(self) -> int:
        """Number of weights in the attention projections and the feed-forward network of each
        layer.
        """
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def parameter_count(self) -> int:
        """Total number of weights in all matrices. Biases and normalisation weights are ignored,
        and tied embeddings are counted once.
        """
        return (
            self.layers * self.weights_per_layer
            + (1 if self.tied else 2) * self.hidden * self.vocabulary
        )

    @property
    def parameter_bytes(self) -> int:
        """Size of the weights in bytes."""
        return self.parameter_count * self.bytes_per_value

    @property
    def kv_bytes_per_token(self) -> int:
        """Size of the KV cache per token in bytes, for the keys and values in all layers and KV
        heads.
        """
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_value

    @property
    def flops_per_token(self) -> int:
        """Floating-point operations per new token, excluding attention scores and the output
        head.
        """
        return 2 * self.layers * self.weights_per_layer

    @property
    def flops_per_token_pair(self) -> int:
        """Floating-point operations for attention per pair of a new token and an attended token."""
        return 4 * self.layers * self.heads * self.head_dim

    @property
    def flops_per_logit(self) -> int:
        """Floating-point operations of the output head per position."""
        return 2 * self.hidden * self.vocabulary


Decoder = PaperDecoder | ExactDecoder
