"""Dense decoders, whose layers are all alike: what the cost models of `serving-latency` can describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from specopt.instances.checkpoints.layers import Layer
from specopt.models.decoder import ExactDecoder, PaperDecoder


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a decoder has next to the matrices of its layers.

    Parameters
    ----------
    qkv_bias, output_bias, mlp_bias
        Biases on the query, key and value projections, on the attention's output, in the feed-forward network.
    query_key_norm
        Whether queries and keys are normed per head.
    norms_per_layer
        Norms of the hidden size in a layer.
    final_norm
        Whether there is a norm behind the last layer.
    values_per_norm
        Values per dimension of a norm: 2 (weight and bias), 1 (weight) or 0.
    layer_norm
        Whether norms also subtract the mean.
    position_rows
        Rows of the table of learned positions; 0 for rotary positions.
    position_offset
        How many of its first rows stand for no position.
    embedding
        Dimension of the embeddings; where it is not the hidden one, two projections lead in and out.
    """

    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    query_key_norm: bool
    norms_per_layer: int
    final_norm: bool
    values_per_norm: int
    layer_norm: bool
    position_rows: int
    position_offset: int
    embedding: int


LAYOUT = tuple(field.name for field in dataclasses.fields(Layout))


@dataclass(frozen=True, kw_only=True)
class DenseShape:
    """The two cost models of a dense decoder, and what they leave out."""

    exact: ExactDecoder
    paper: PaperDecoder
    layout: Layout


def dense_shape(layers: Sequence[Layer], name: str, value_bytes: int) -> DenseShape | None:
    """Return the cost models of a decoder; None if they do not describe it."""
    sizes = layers[0].sizes
    names = ("heads", "groups", "head", "ffn", "gated", "borrows", *LAYOUT)
    shapes = {tuple(layer.sizes[name] for name in names) if layer.is_plain else None for layer in set(layers)}
    if None in shapes or len(shapes) > 1:
        return None
    exact = ExactDecoder(
        layers=len(layers),
        hidden=sizes["hidden_size"],
        ffn=sizes["ffn"],
        heads=sizes["heads"],
        kv_heads=sizes["groups"],
        head_dim=sizes["head"],
        gated=sizes["gated"],
        vocabulary=sizes["vocab_size"],
        tied=sizes["tied"],
        bytes_per_value=value_bytes,
        name=name,
    )
    paper = PaperDecoder(layers=exact.layers, hidden=exact.hidden, ffn=exact.ffn, name=name)
    return DenseShape(exact=exact, paper=paper, layout=Layout(**{name: sizes[name] for name in LAYOUT}))
