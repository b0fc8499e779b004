"""Draft heads on hidden states of a target model: layers that predict further tokens (MTP), and heads of their own.

A head has no vocabulary of its own to speak of: it takes the target's table of embeddings, and most take its output
matrix. Those are borrowed: read in every pass, but not held once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from specopt.instances.checkpoints.attention import GroupedAttention
from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.forms import Sizes
from specopt.instances.checkpoints.layers import Layer, named_kinds, read_attention, read_layer, read_layers
from specopt.instances.checkpoints.model_types import DENSE, MARKS
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.storage import Storage
from specopt.instances.checkpoints.weights import Weight, matrix, under, vector
from specopt.models.arguments import integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS

Kind = Literal["mtp", "eagle", "eagle3", "p-eagle", "dflash", "dspark", "domino"]

FAMILIES: Mapping[str, Kind] = MappingProxyType(
    {"Eagle3": "eagle3", "PEagle": "p-eagle", "DFlash": "dflash", "DSpark": "dspark", "Domino": "domino"}
)

HEADS: Mapping[str, Kind] = MappingProxyType(
    {
        "LlamaForCausalLMEagle": "eagle",
        "EagleLlamaForCausalLM": "eagle",
        "LlamaForCausalLMEagle3": "eagle3",
        "Eagle3LlamaForCausalLM": "eagle3",
        "Qwen3DSparkModel": "dspark",
        **{f"{name}{suffix}": kind for name, kind in FAMILIES.items() for suffix in ("DraftModel", "Speculator")},
    }
)
"""Classes of draft heads that configs of their own name."""

PARALLEL = ("ptd_token_id", "parallel_drafting", "para_depths", "num_depths")
"""Fields of an EAGLE-3 head that drafts all tokens in one pass: a P-EAGLE one."""

BLOCK_FIELDS = (
    "attention_mode", "block_size", "causal", "confidence_head_alpha", "confidence_head_with_markov", "emb_dim",
    "enable_confidence_head", "gru_hidden_dim", "markov_head_type", "markov_rank", "mask_token_id", "num_target_layers",
    "projector_type", "pure_draft_prefix_len", "sample_from_anchor", "shift_label", "suffix_start", "target_layer_ids",
    "use_confidence_head",
)  # fmt: skip
"""What a `dflash_config` may have: other fields stand for tensors that are not known here."""

MODEL = "speculators_model_type"

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
    name = None if fields.get("dspark_block_size") else fields.type.drafts
    for other in MARKS["predicting"].fields if name is None else ():
        if fields.get(other):
            fields.notes.append(f"{other}: layers for drafting; they are not counted for {fields.model_type}")
    count = 0 if name is None else fields.size(name, 0, low=0)
    if count == 0:
        return ()
    blocks = _predicting_blocks(fields, layers)
    shares = name == "mtp_num_hidden_layers"

    def weights() -> Iterator[Weight]:
        for index in range(count):
            layer = f"mtp.layers.{index}" if shares else f"{fields.type.model}.layers.{len(layers) + index}"
            for block in blocks:
                yield from under(layer, block.weights())
            if fields.type.draft_kinds:
                yield from under(layer, Sizes(fields).tensors(fields.type.outside))
            if index == 0 or not shares:
                yield from under("mtp" if shares else layer, _join(blocks[0].hidden, "fc" if shares else "eh_proj"))
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
            mixers=tuple(block.mixer for block in blocks) * count,
            storage=storage,
        ),
    )


def _predicting_blocks(fields: Fields, layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers of one prediction."""
    kind = fields.type
    given = (named_kinds(fields, name) for name in kind.draft_fields)
    names = next(filter(None, given), kind.draft_kinds)
    if not names:
        return [next(layer for layer in reversed(layers) if layer.mixer.has_cache)]
    parts = (name.partition("/") for name in names)
    return [read_layer(fields, name, sparse=network != DENSE) for name, _, network in parts]


def _join(hidden: int, name: str) -> Iterator[Weight]:
    yield from matrix(name, hidden, 2 * hidden)
    yield vector("norms", 3, hidden)


def head_kind(fields: Fields) -> Kind | None:
    """Return which draft head a config of its own describes; None: it is a decoder."""
    given = fields.whole.get("architectures")
    found = [
        HEADS[name] for name in (given if isinstance(given, list) else []) if isinstance(name, str) and name in HEADS
    ]
    kind = found[0] if found else "eagle3" if fields.whole.get("draft_vocab_size") is not None else None
    if kind == "eagle3" and (_outside(fields, *PARALLEL) is not None or fields.whole.get(MODEL) == "peagle"):
        return "p-eagle"
    if kind == "dflash":
        projector = _outside(fields, "projector_type")
        return kind if projector is None else one_of("projector_type", projector, ("dflash", "dspark", "domino"))
    return kind


def read_head(fields: Fields, kind: Kind, storage: Storage) -> DraftHead:
    """Return the draft head that a config describes.

    EAGLE joins embedding and the target's last hidden state; its first layer has no norm before attention, none is
    behind the last, and the output matrix is the target's. EAGLE-3 joins three hidden states. Its first layer attends
    to the normed embedding beside them, and its output matrix scores a vocabulary of its own. P-EAGLE has a table of
    its own, and a vector in place of states that are not there yet. DFlash joins hidden states, too; DSpark adds a bias
    by the token before and a measure of confidence, Domino a recurrent network over the tokens before.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    layers = read_layers(fields)
    if any(not isinstance(layer.mixer, GroupedAttention) or layer.network is None for layer in layers):
        raise InvalidInput(f"{fields.where}model_type: expected a dense decoder for {kind}, got {fields.model_type}")
    hidden, vocabulary = fields.size("hidden_size"), fields.size("vocab_size")
    drafted = _size(fields, "draft_vocab_size", vocabulary)
    table = Weight(name="embed_tokens", shape=(vocabulary, hidden), role="table")
    output = Weight(name="lm_head", shape=(drafted, hidden), role="head")
    states = _size(fields, "target_hidden_size", hidden)
    owns = kind == "p-eagle" or (kind == "eagle3" and states != hidden)  # the target's table has another dimension
    states *= _states(fields, kind)
    borrowed, further = [] if owns else [table], [table] if owns else []
    if kind == "eagle":
        layers[0] = replace(layers[0], norms=layers[0].norms - 1)
        further += matrix("fc", hidden, 2 * hidden, fields.flag("bias", True))
        borrowed.append(output)
    elif kind in ("eagle3", "p-eagle"):
        attention = read_attention(fields, hidden, inputs=2 * hidden)
        layers[0] = replace(layers[0], mixer=attention, norms=layers[0].norms + 1)
        further += [*matrix("fc", hidden, states), vector("norm", hidden), output]
        further += [vector("mask_hidden", states)] if kind == "p-eagle" else []
    else:
        further += [*matrix("fc", hidden, states), vector("hidden_norm", hidden), vector("norm", hidden)]
        (borrowed if drafted == vocabulary else further).append(output)
        further += _block_tensors(fields, kind, hidden, vocabulary, drafted)
    blocks = [weight for index, layer in enumerate(layers) for weight in under(f"layers.{index}", layer.weights())]
    return DraftHead(
        kind=kind,
        layers=len(layers),
        weights=(*blocks, *further),
        borrowed=tuple(borrowed),
        mixers=tuple(layer.mixer for layer in layers),
        storage=storage,
    )


def _block_tensors(fields: Fields, kind: Kind, hidden: int, vocabulary: int, drafted: int) -> Iterator[Weight]:
    """Yield what heads that draft a block at once have behind their layers."""
    config = fields.whole.get("dflash_config")
    for name in config if isinstance(config, Mapping) else ():
        one_of("dflash_config", name, BLOCK_FIELDS)
    if kind == "dspark":
        one_of("markov_head_type", _outside(fields, "markov_head_type") or "vanilla", ("vanilla",))
        rank = _size(fields, "markov_rank")
        yield Weight(name="markov_head.markov_w1", shape=(vocabulary, rank), role="table")
        yield Weight(name="markov_head.markov_w2", shape=(drafted, rank), role="head")
        if _outside(fields, "enable_confidence_head", "use_confidence_head") is not False:
            joined = hidden if _outside(fields, "confidence_head_with_markov") is False else hidden + rank
            yield from matrix("confidence_head.proj", 1, joined, True)
    if kind == "domino":
        inner, narrow = _size(fields, "gru_hidden_dim"), _size(fields, "emb_dim")
        yield from matrix("prefix_gru.weight_ih", 3 * inner, hidden)
        yield from matrix("prefix_gru.weight_hh", 3 * inner, inner)
        yield from matrix("embed_proj.0", narrow, hidden + inner)
        yield Weight(name="embed_proj.2", shape=(drafted, narrow), role="head")


def _outside(fields: Fields, *names: str) -> Any:
    """Return the first of these fields that a head's decoder, what is around it, or its kind's config has."""
    places = (fields.part, fields.whole, fields.whole.get("eagle_config"), fields.whole.get("dflash_config"))
    found = (place.get(name) for name in names for place in places if isinstance(place, Mapping))
    return next((value for value in found if value is not None), None)


def _size(fields: Fields, name: str, default: int | None = None) -> int:
    found = _outside(fields, name)
    if found is None and default is not None:
        return default
    return integer(name, found, 1, MAX_TOKENS)


def _states(fields: Fields, kind: Kind) -> int:
    """Return how many hidden states of the target are joined."""
    name = "target_layer_ids" if kind in ("dflash", "dspark", "domino") else "eagle_aux_hidden_state_layer_ids"
    listed = _outside(fields, name, "aux_hidden_state_layer_ids")
    if listed is None and name != "target_layer_ids":
        return EAGLE3_STATES
    found = len(sequence(name, listed))
    if found == 0:
        raise InvalidInput(f"{name}: expected at least one layer, got none")
    return found
