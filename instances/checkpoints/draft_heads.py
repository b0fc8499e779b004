"""Readers for draft heads, which use the hidden states of a target model.

A head is either a group of layers in the target's config that predict further tokens (MTP), or a
model with a separate config. Every head uses the target's embedding table, and most heads also
use its output matrix. These tensors are borrowed: every pass reads them, but they are stored only
once. `fields.toml` lists the other tensors of each kind of head.
"""

from __future__ import annotations

from specopt.instances.checkpoints.config import HEADS, MAX_LAYERS, TABLE, Config, Formulas, Weight
from specopt.instances.checkpoints.layers import Part, listed_words, read_layer, read_layers
from specopt.instances.checkpoints.quantisation import Storage
from specopt.models.arguments import one_of, sequence
from specopt.models.errors import InvalidInput


def predicting_layers(config: Config, target: Part) -> tuple[Part, ...]:
    """Return the MTP head in a config, as a tuple with at most one entry.

    Each layer of the head uses a matrix to combine the normalised embedding with the normalised
    hidden state. Apart from this matrix and a final norm, the layer has the same shape as the
    target's last layer that caches values for every token. In Qwen models, all layers of the head
    share the matrix and the norms.
    """
    kind = config.type
    count = config.size(kind["drafts"], 0, 0, MAX_LAYERS)
    if not count or config.given("dspark_block_size"):
        for other in filter(config.get, TABLE["marks"]["predicting"]["fields"]):
            config.note(
                f"{other}: layers for drafting; they are not counted for {config.model_type}"
            )
        return ()
    listed = listed_words(config, "draft_fields", "kind_names").values()
    known = [{"kind": word} for words in listed for word in words] or kind["draft_layers"]
    place = {"layers": target.layers, "index": target.layers}
    caching = [block for block in target.blocks if block["kv_values"] + block["window_values"]]
    sizes = [config.formulas.having(place | item) for item in known]
    sizes = sizes or [*target.blocks, *caching][-1:]
    blocks = list[Formulas]()
    outside = list[Weight]()
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
    return (head,)


def head_kind(config: Config) -> str | None:
    """Return the kind of draft head that a config describes, or None if it describes a decoder."""
    names = sequence("architectures", config.whole.get("architectures") or [])
    for kind, head in HEADS.items():
        if any(name in head["classes"] for name in names):
            return kind
    return "eagle3" if config.whole.given("draft_vocab_size") else None


def read_head(config: Config, kind: str, storage: Storage) -> Part:
    """Return the draft head that a config describes.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    own = config.whole.inside("dflash_config", {}).data
    for name in own:
        one_of("dflash_config", name, HEADS["dflash"]["fields"])
    eagle = config.whole.inside("eagle_config", {}).data
    config.data = {
        name: value
        for section in (own, eagle, config.whole.data, config.data)
        for name, value in section.items()
        if value is not None
    }
    kind = config.formulas.value(HEADS[kind]["variant"])
    head = HEADS[kind]
    config.check({**config.type["fixed"], **head["fixed"]}, "drafts")
    blocks = read_layers(config, "layers")
    if not all(block["plain"] for block in blocks):
        raise InvalidInput(
            f"{config.path('model_type')}: expected a dense decoder for {kind}, got"
            f" {config.model_type}"
        )
    blocks[0] = read_layer(config.type, blocks[0].having(head["first_layer"]), "layers.0")
    sizes = config.formulas.having(head["formulas"])
    borrowed = [*sizes.tensors(head["borrowed"])]
    names = ", ".join(item.name for item in borrowed)
    config.note(f"{kind}: a draft head that borrows {names}")
    return Part(
        kind=kind,
        layers=len(blocks),
        blocks=blocks,
        outside=[*sizes.tensors(head["tensors"])],
        borrowed=borrowed,
        storage=storage,
    )
