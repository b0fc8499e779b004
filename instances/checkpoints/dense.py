"""Dense decoders, whose layers are all alike: what the cost models of `serving-latency` can describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specopt.instances.checkpoints.attention import GroupedAttention
from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.layers import Layer, norm_values
from specopt.instances.checkpoints.storage import Storage
from specopt.models.decoder import ExactDecoder, PaperDecoder


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a decoder has beside the matrices of its layers.

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


@dataclass(frozen=True, kw_only=True)
class DenseShape:
    """The two cost models of a dense decoder, and what they leave out."""

    exact: ExactDecoder
    paper: PaperDecoder
    layout: Layout


def dense_shape(fields: Fields, layers: Sequence[Layer], name: str, storage: Storage) -> DenseShape | None:
    """Return the cost models of a decoder; None where they do not describe it."""
    attention = [layer.mixer for layer in layers if isinstance(layer.mixer, GroupedAttention)]
    mixers, networks = {replace(item, window=None) for item in attention}, {layer.network for layer in layers}
    if len(attention) < len(layers) or len(mixers) > 1 or len(networks) > 1 or any(layer.experts for layer in layers):
        return None
    (mixer,), (network,) = mixers, networks
    if network is None or mixer.gated or mixer.sinks or mixer.keys_are_values:
        return None
    exact = ExactDecoder(
        layers=len(layers),
        hidden=mixer.hidden,
        ffn=network.ffn,
        heads=mixer.heads,
        kv_heads=mixer.kv_heads,
        head_dim=mixer.head_dim,
        gated=network.gated,
        vocabulary=fields.size("vocab_size"),
        tied=fields.tied(),
        bytes_per_value=storage.value_bytes,
        name=name,
    )
    paper = PaperDecoder(layers=exact.layers, hidden=exact.hidden, ffn=exact.ffn, name=name)
    return DenseShape(exact=exact, paper=paper, layout=_layout(fields, layers[0], mixer))


def _layout(fields: Fields, layer: Layer, mixer: GroupedAttention) -> Layout:
    kind = fields.type
    final, positions, embedding = True, 0, mixer.hidden
    if fields.model_type == "opt":
        final = fields.flag("do_layer_norm_before", True) and not fields.flag("_remove_final_layer_norm", False)
        embedding = fields.size("word_embed_proj_dim", mixer.hidden)
    if kind.position_offset is not None:
        positions = fields.size("max_position_embeddings") + kind.position_offset
    return Layout(
        qkv_bias=mixer.qkv_bias,
        output_bias=mixer.output_bias,
        mlp_bias=fields.switch(kind.mlp_bias),
        query_key_norm=mixer.norm_values > 0,
        norms_per_layer=layer.norms,
        final_norm=final,
        values_per_norm=norm_values(fields),
        layer_norm=kind.layer_norm,
        position_rows=positions,
        position_offset=kind.position_offset or 0,
        embedding=embedding,
    )
