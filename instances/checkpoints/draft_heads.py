"""Draft heads on hidden states of a target model: layers that predict further tokens (MTP), and heads of their own.

A head takes the target's table of embeddings, and most take its output matrix. Those are borrowed: read in every pass,
but not held once more. `fields.toml` lists what each kind has next to its layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.fields import HEADS, MARKS
from specopt.instances.checkpoints.layers import Layer, listed_words, read_layer, read_layers, under
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.quantisation import Storage
from specopt.instances.checkpoints.tensors import Weight
from specopt.models.arguments import one_of
from specopt.models.errors import InvalidInput

CLASSES = {name: kind for kind, head in HEADS.items() for name in head["classes"]}
"""Kinds of draft heads that have a config of their own, by class."""

PARALLEL = "ptd_token_id|parallel_drafting|para_depths|num_depths"
"""Fields of an EAGLE-3 head that drafts all tokens in one pass: a P-EAGLE one."""


def predicting_layers(
    config: Config, layers: Sequence[Layer], embeddings: Sequence[Weight], storage: Storage
) -> list[Part]:
    """Return the head of layers that predict further tokens, if a target's config has one.

    Each joins embedding and hidden state by a matrix, behind a norm of each, and is a layer like the target's last one
    with a norm behind it. Qwen's share the matrix and the norms.
    """
    kind = config.type
    if not kind.drafts or config.given("dspark_block_size"):
        for other in filter(config.get, MARKS["predicting"]["fields"]):
            config.note(f"{other}: layers for drafting; they are not counted for {config.model_type}")
        return []
    count, shares = config.size(kind.drafts, 0, 0), kind.drafts == "mtp_num_hidden_layers"
    blocks, weights = _predicting_blocks(config, layers), list[Weight]()
    for index in range(count):
        place = f"mtp.layers.{index}" if shares else f"{kind.names['model']}.layers.{len(layers) + index}"
        for block in blocks:
            weights += under(place, block.weights)
        if kind.draft_kinds:
            weights += config.formulas.tensors(kind.outside)
        if index == 0 or not shares:
            join = "mtp.fc" if shares else f"{place}.eh_proj"
            weights += blocks[0].sizes.tensors([f"{join}: hidden_size, 2 * hidden_size", "norms other: 3, hidden_size"])
    borrowed = tuple(embeddings)
    if config.flag("mtp_use_dedicated_embeddings"):
        weights.append(replace(borrowed[0], name="mtp.embed_tokens", role="table"))
        borrowed = borrowed[1:] or borrowed
    attention = tuple(block.attention for block in blocks) * count
    head = Part(
        kind="mtp", layers=count, weights=tuple(weights), borrowed=borrowed, attention=attention, storage=storage
    )
    return [head] if count else []


def _predicting_blocks(config: Config, layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers of one prediction."""
    kind = config.type
    lists = (listed_words(config, name, kind.kind_names, of_head=True) for name in kind.draft_fields)
    names = next(filter(None, lists), kind.draft_kinds)
    if not names:
        caching = [layer for layer in layers if layer.attention.kv_values or layer.attention.window_values]
        return caching[-1:] or [layers[-1]]
    found = []
    for name in names:
        word, _, network = name.partition("/")
        sizes = config.formulas.having({}, layers=len(layers), index=len(layers), kind=word)
        found.append(read_layer(config, sizes.having({}, sparse=network == "experts") if network else sizes))
    return found


def head_kind(config: Config) -> str | None:
    """Return which draft head a config of its own describes; None if it is a decoder."""
    names = config.whole.get("architectures")
    kinds = [CLASSES[name] for name in (names if isinstance(names, list) else ()) if str(name) in CLASSES]
    return (*kinds, "eagle3")[0] if kinds or config.whole.get("draft_vocab_size") is not None else None


def read_head(config: Config, kind: str, storage: Storage) -> Part:
    """Return the draft head that a config describes.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    own = config.whole.get("dflash_config")
    for name in own if isinstance(own, Mapping) else ():
        one_of("dflash_config", name, HEADS["dflash"]["fields"])
    places = (own, config.whole.get("eagle_config"), config.whole, config.data)
    fields = [item for place in places if isinstance(place, Mapping) for item in place.items()]
    config.data = {name: value for name, value in fields if value is not None}
    if kind == "eagle3" and (config.given(PARALLEL) or config.get("speculators_model_type") == "peagle"):
        kind = "p-eagle"
    if kind == "dflash":
        kind = config.choice("projector_type", ("dflash", "dspark", "domino"), kind)
    head = HEADS[kind]
    config.check_fixed(head["fixed"])
    layers = read_layers(config)
    if not all(layer.is_plain for layer in layers):
        raise InvalidInput(f"{config.where}model_type: expected a dense decoder for {kind}, got {config.model_type}")
    layers[0] = read_layer(config, layers[0].sizes.having(head["first_layer"]))
    sizes = config.formulas.having(head["formulas"])
    weights = [weight for index, layer in enumerate(layers) for weight in under(f"layers.{index}", layer.weights)]
    return Part(
        kind=kind,
        layers=len(layers),
        weights=(*weights, *sizes.tensors(head["tensors"])),
        borrowed=tuple(sizes.tensors(head["borrowed"])),
        attention=tuple(layer.attention for layer in layers),
        storage=storage,
    )
