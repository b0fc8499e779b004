"""Readers for draft heads, which use the hidden states of a target model.

A head is either a group of layers in the target's config that predict further tokens (MTP), or a
model with a separate config. Every head uses the target's embedding table, and most heads also
use its output matrix. These tensors are borrowed: every pass reads them, but they are stored only
once. `fields.toml` lists the other tensors of each kind of head.
"""

from __future__ import annotations

from collections.abc import Mapping

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.fields import HEADS, TABLE, Weight
from specopt.instances.checkpoints.layers import Layer, Part, listed_words, read_layer, read_layers
from specopt.instances.checkpoints.quantisation import Storage
from specopt.models.arguments import one_of
from specopt.models.errors import InvalidInput

CLASSES = {name: kind for kind, head in HEADS.items() for name in head["classes"]}
"""Kinds of draft heads with separate configs, by class name."""

PARALLEL = "ptd_token_id|parallel_drafting|para_depths|num_depths"
"""Fields that mark an EAGLE-3 head as a P-EAGLE head, which drafts all tokens in one pass."""


def predicting_layers(config: Config, target: Part) -> list[Part]:
    """Return the MTP head in a config, as a list with at most one entry.

    Each layer of the head uses a matrix to combine the normalised embedding with the normalised
    hidden state. Apart from this matrix and a final norm, the layer has the same shape as the
    target's last layer that caches values for every token. In Qwen models, all layers of the head
    share the matrix and the norms.
    """
    kind = config.type
    if not kind["drafts"] or config.given("dspark_block_size"):
        for other in filter(config.get, TABLE["marks"]["predicting"]["fields"]):
            config.note(
                f"{other}: layers for drafting; they are not counted for {config.model_type}"
            )
        return []
    lists = listed_words(config, kind["draft_fields"], kind["kind_names"]).values()
    known = [{"kind": repr(word)} for words in lists for word in words] or kind["draft_layers"]
    caching = [block.sizes for block in target.blocks if block.kv_values + block.window_values]
    place = {"layers": target.layers, "index": target.layers}
    sizes = [config.formulas.having(place | item) for item in known] or [
        target.blocks[-1].sizes,
        *caching,
    ][-1:]
    blocks = list[Layer]()
    outside = list[Weight]()
    count = config.size(kind["drafts"], 0, 0)
    for index in range(count):
        name = kind["draft_place"].format(index, target.layers + index)
        blocks += [read_layer(kind, item, name) for item in sizes]
        outside += sizes[0].tensors(kind["draft_each"], f"{name}.")
    outside += sizes[0].tensors(kind["draft_once"])
    borrowed = [
        weight for weight in target.outside if weight.name in ("model.embed_tokens", "lm_head")
    ]
    head = Part(
        kind="mtp",
        layers=count,
        blocks=blocks,
        outside=outside,
        borrowed=borrowed,
        storage=target.storage,
    )
    return [head] if count else []


def head_kind(config: Config) -> str | None:
    """Return the kind of draft head that a config describes, or None if it describes a decoder."""
    names = config.whole.get("architectures")
    kinds = [
        CLASSES[name] for name in (names if isinstance(names, list) else ()) if str(name) in CLASSES
    ]
    return (*kinds, "eagle3")[0] if kinds or config.whole.given("draft_vocab_size") else None


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
    places = (own, config.whole.get("eagle_config"), config.whole.data, config.data)
    fields = [item for place in places if isinstance(place, Mapping) for item in place.items()]
    config.data = {name: value for name, value in fields if value is not None}
    if kind == "eagle3" and (
        config.given(PARALLEL) or config.get("speculators_model_type") == "peagle"
    ):
        kind = "p-eagle"
    if kind == "dflash":
        kind = config.choice("projector_type", ("dflash", "dspark", "domino"), kind)
    head = HEADS[kind]
    config.check(head["fixed"], "drafts")
    blocks = read_layers(config, "layers")
    if not all(block.sizes["plain"] for block in blocks):
        raise InvalidInput(
            f"{config.where}model_type: expected a dense decoder for {kind}, got"
            f" {config.model_type}"
        )
    blocks[0] = read_layer(config.type, blocks[0].sizes.having(head["first_layer"]), "layers.0")
    sizes = config.formulas.having(head["formulas"])
    return Part(
        kind=kind,
        layers=len(blocks),
        blocks=blocks,
        outside=[*sizes.tensors(head["tensors"])],
        borrowed=[*sizes.tensors(head["borrowed"])],
        storage=storage,
    )
