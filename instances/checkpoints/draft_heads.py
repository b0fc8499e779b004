"""Draft heads on hidden states of a target model: layers that predict further tokens (MTP), and heads of their own.

A head takes the target's table of embeddings, and most take its output matrix. Those are borrowed: read in every pass,
but not held once more. `fields.toml` lists what each kind has next to its layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.fields import HEADS, MARKS
from specopt.instances.checkpoints.layers import Layer, listed_words, read_layer, read_layers, under
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.quantisation import Storage
from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Weight
from specopt.models.arguments import one_of
from specopt.models.errors import InvalidInput

CLASSES = {name: kind for kind, head in HEADS.items() for name in head["classes"]}
"""Kinds of draft heads that have a config of their own, by class."""

PARALLEL = "ptd_token_id|parallel_drafting|para_depths|num_depths"
"""Fields of an EAGLE-3 head that drafts all tokens in one pass: a P-EAGLE one."""


@dataclass(frozen=True, kw_only=True)
class DraftHead(Part):
    """A draft head.

    Parameters
    ----------
    kind
        How it drafts: a name in `HEADS`.
    """

    kind: str

    @property
    def layers(self) -> int:
        """Its decoder layers."""
        return len(self.attention)


def predicting_layers(
    config: Config, layers: Sequence[Layer], embeddings: Sequence[Weight], storage: Storage
) -> DraftHead | None:
    """Return the head of layers that predict further tokens, if a target's config has one.

    Each joins embedding and hidden state by a matrix, behind a norm of each, and is a layer like the target's last one
    with a norm behind it. Qwen's share the matrix and the norms.
    """
    name = "" if config.given("dspark_block_size") else config.type.drafts
    if not name:
        for other in filter(config.get, MARKS["predicting"]["fields"]):
            config.note(f"{other}: layers for drafting; they are not counted for {config.model_type}")
    count = config.size(name, 0, low=0) if name else 0
    if count == 0:
        return None
    blocks = _predicting_blocks(config, layers)
    sizes, shares = blocks[0].sizes, name == "mtp_num_hidden_layers"
    weights = list[Weight]()
    for index in range(count):
        place = f"mtp.layers.{index}" if shares else f"{config.type.names['model']}.layers.{len(layers) + index}"
        for block in blocks:
            weights += under(place, block.weights)
        if config.type.draft_kinds:
            weights += sizes.tensors(config.type.outside)
        if index == 0 or not shares:
            join = "mtp.fc" if shares else f"{place}.eh_proj"
            weights += sizes.tensors([f"{join}: hidden_size, 2 * hidden_size", "norms other: 3, hidden_size"])
    dedicated = config.flag("mtp_use_dedicated_embeddings")
    if dedicated:
        weights.append(replace(embeddings[0], name="mtp.embed_tokens", role="table"))
    borrowed = embeddings[1:] if dedicated and len(embeddings) > 1 else embeddings
    attention = tuple(block.attention for block in blocks) * count
    return DraftHead(
        kind="mtp", weights=tuple(weights), borrowed=tuple(borrowed), attention=attention, storage=storage
    )


def _predicting_blocks(config: Config, layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers of one prediction."""
    kind = config.type
    lists = (listed_words(config, name, kind.kind_names, of_head=True) for name in kind.draft_fields)
    names = next(filter(None, lists), kind.draft_kinds)
    if not names:
        return [next((layer for layer in reversed(layers) if layer.attention.has_cache), layers[-1])]
    found = []
    for name in names:
        word, _, network = name.partition("/")
        sizes = config.formulas.having({}, layers=len(layers), index=len(layers), kind=word)
        found.append(read_layer(config, sizes.having({}, sparse=network == "experts") if network else sizes))
    return found


def widen(config: Config) -> None:
    """Let a head's config have the fields around its decoder, too, and those of its kind."""
    whole = config.whole
    places = (whole.get("dflash_config"), whole.get("eagle_config"), whole, config.data)
    config.data = {
        name: value
        for place in places
        if isinstance(place, Mapping)
        for name, value in place.items()
        if value is not None
    }


def head_kind(config: Config) -> str | None:
    """Return which draft head a config of its own describes; None if it is a decoder."""
    given = config.whole.get("architectures")
    names = given if isinstance(given, list) else []
    kind = next((CLASSES[name] for name in names if isinstance(name, str) and name in CLASSES), None)
    if kind is None and config.whole.get("draft_vocab_size") is not None:
        kind = "eagle3"
    return kind


def read_head(config: Config, kind: str, storage: Storage) -> DraftHead:
    """Return the draft head that a config describes.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    widen(config)
    if kind == "eagle3" and (config.given(PARALLEL) or config.get("speculators_model_type") == "peagle"):
        kind = "p-eagle"
    if kind == "dflash":
        kind = one_of("projector_type", config.get("projector_type") or kind, ("dflash", "dspark", "domino"))
    head = HEADS[kind]
    config.check_fixed(head["fixed"])
    for name in Section(config.get("dflash_config") or {}, "dflash_config").data:
        one_of("dflash_config", name, HEADS["dflash"]["fields"])
    layers = read_layers(config)
    if not all(layer.is_plain for layer in layers):
        raise InvalidInput(f"{config.where}model_type: expected a dense decoder for {kind}, got {config.model_type}")
    layers[0] = read_layer(config, layers[0].sizes.having(head["first_layer"]))
    sizes = config.formulas.having(head["formulas"])
    weights = [weight for index, layer in enumerate(layers) for weight in under(f"layers.{index}", layer.weights)]
    return DraftHead(
        kind=kind,
        weights=(*weights, *sizes.tensors(head["tensors"])),
        borrowed=tuple(sizes.tensors(head["borrowed"])),
        attention=tuple(layer.attention for layer in layers),
        storage=storage,
    )
