"""Draft heads on the hidden state of a target model: EAGLE, EAGLE-3, and layers that predict further tokens (MTP).

A head has no vocabulary of its own to speak of: it takes the target's table of embeddings, and most take its output
matrix. Those are borrowed: read in every pass, but not held once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from specopt.instances.checkpoints.attention import LinearAttention
from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.layers import Layer, read_attention, read_layers
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.storage import Storage
from specopt.instances.checkpoints.weights import Weight, matrix, under, vector
from specopt.models.arguments import integer, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS

Kind = Literal["mtp", "eagle", "eagle3"]

EAGLE: Mapping[str, Kind] = MappingProxyType(
    {
        "LlamaForCausalLMEagle": "eagle",
        "EagleLlamaForCausalLM": "eagle",
        "LlamaForCausalLMEagle3": "eagle3",
        "Eagle3LlamaForCausalLM": "eagle3",
        "Eagle3Speculator": "eagle3",
        "Eagle3DraftModel": "eagle3",
    }
)
"""Classes of draft heads that configs of their own name."""

EAGLE3_STATES = 3
"""Hidden states of the target that an EAGLE-3 head takes, unless its config lists them."""


@dataclass(frozen=True, kw_only=True)
class DraftHead(Part):
    """A draft head.

    Parameters
    ----------
    kind
        How it drafts.
    layers
        Its decoder layers.
    """

    kind: Kind
    layers: int


def predicting_layers(
    fields: Fields, layers: Sequence[Layer], embeddings: Sequence[Weight], storage: Storage
) -> tuple[DraftHead, ...]:
    """Return the head of layers that predict further tokens, if a target's config has one.

    Each joins embedding and hidden state by a matrix, behind a norm of each, and is a layer like the target's last one
    with a norm behind it. Qwen's share the matrix and the norms.
    """
    name = fields.type.drafts
    count = 0 if name is None else fields.size(name, 0, low=0)
    if count == 0:
        return ()
    block = next(layer for layer in reversed(layers) if not isinstance(layer.mixer, LinearAttention))
    shares = name == "mtp_num_hidden_layers"

    def weights() -> Iterator[Weight]:
        for index in range(count):
            layer = f"mtp.layers.{index}" if shares else f"model.layers.{len(layers) + index}"
            yield from under(layer, block.weights())
            if index == 0 or not shares:
                yield from under("mtp" if shares else layer, _join(block.hidden, "fc" if shares else "eh_proj"))
        if fields.flag("mtp_use_dedicated_embeddings", False):
            yield from (replace(item, name="mtp.embed_tokens", role="table") for item in embeddings[:1])

    own = tuple(weights())
    dedicated = any(item.role == "table" for item in own)
    return (
        DraftHead(
            kind="mtp",
            layers=count,
            weights=own,
            borrowed=tuple(embeddings[1:] if dedicated and len(embeddings) > 1 else embeddings),
            mixers=(block.mixer,) * count,
            storage=storage,
        ),
    )


def _join(hidden: int, name: str) -> Iterator[Weight]:
    yield from matrix(name, hidden, 2 * hidden)
    yield vector("norms", 3, hidden)


def eagle_kind(fields: Fields) -> Kind | None:
    """Return which draft head a config of its own describes; None: it is a decoder."""
    given = (fields.whole.get("architectures") or []) if isinstance(fields.whole.get("architectures"), list) else []
    for name in given:
        if isinstance(name, str) and name in EAGLE:
            return EAGLE[name]
    return "eagle3" if fields.whole.get("draft_vocab_size") is not None else None


def read_eagle(fields: Fields, kind: Kind, storage: Storage) -> DraftHead:
    """Return the EAGLE or EAGLE-3 head that a config describes.

    EAGLE joins embedding and the target's last hidden state; its first layer has no norm before attention, none is
    behind the last, and the output matrix is the target's. EAGLE-3 joins three hidden states; its first layer attends
    to the normed embedding beside them, and its output matrix scores a vocabulary of its own.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    hidden, vocabulary = fields.size("hidden_size"), fields.size("vocab_size")
    layers = read_layers(fields)
    table = Weight(name="embed_tokens", shape=(vocabulary, hidden), role="table")
    if kind == "eagle":
        layers[0] = replace(layers[0], norms=layers[0].norms - 1)
        fusion = list(matrix("fc", hidden, 2 * hidden, fields.flag("bias", True)))
        outside: list[Weight] = []
        borrowed = [table, Weight(name="lm_head", shape=(vocabulary, hidden), role="head")]
    else:
        attention = read_attention(fields, hidden, inputs=2 * hidden)
        layers[0] = replace(layers[0], mixer=attention, norms=layers[0].norms + 1)
        target = _outside(fields, "target_hidden_size") or hidden
        drafted = _outside(fields, "draft_vocab_size") or vocabulary
        fusion = list(matrix("fc", hidden, _states(fields) * target))
        outside = [vector("norm", hidden), Weight(name="lm_head", shape=(drafted, hidden), role="head")]
        borrowed = [table]
        if target != hidden:  # the target's table has another dimension
            outside, borrowed = [*outside, table], []
    blocks = [weight for index, layer in enumerate(layers) for weight in under(f"layers.{index}", layer.weights())]
    return DraftHead(
        kind=kind,
        layers=len(layers),
        weights=(*fusion, *blocks, *outside),
        borrowed=tuple(borrowed),
        mixers=tuple(layer.mixer for layer in layers),
        storage=storage,
    )


def _outside(fields: Fields, name: str) -> int | None:
    """Return a size that stands beside the head's decoder or in it."""
    found = fields.part.get(name, fields.whole.get(name))
    return None if found is None else integer(name, found, 1, MAX_TOKENS)


def _states(fields: Fields) -> int:
    """Return how many hidden states of the target are joined."""
    for place in (fields.whole, fields.whole.get("eagle_config")):
        if isinstance(place, Mapping):
            listed = place.get("eagle_aux_hidden_state_layer_ids")
            if listed is not None:
                found = len(sequence("eagle_aux_hidden_state_layer_ids", listed))
                if found == 0:
                    raise InvalidInput("eagle_aux_hidden_state_layer_ids: expected at least one layer, got none")
                return found
    return EAGLE3_STATES
