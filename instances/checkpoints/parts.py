"""Decoders and draft heads: readers for their layers and tensors, and their parameter counts and
costs.

A draft head uses the hidden states of a target model. It is either a group of layers in the
target's config that predict additional tokens (MTP), or a model with a separate config. Every head
uses the target's embedding table, and most heads also use the target's output matrix. These tensors
are borrowed: every pass reads them, but they are stored only once. `fields.toml` lists the other
tensors of each kind of head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from specopt.instances.checkpoints.config import (
    ATTENTION,
    HEADS,
    MAX_LAYERS,
    TABLE,
    Config,
    Entry,
    Formulas,
    Weight,
)
from specopt.instances.checkpoints.quantisation import Storage
from specopt.models.arguments import one_of, only_fields, sequence
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.pass_time.weight_reads import ExpertLayers, WeightReads

FULL = "'full_attention'"

MAX_DRAFT_LAYERS = 8
"""Maximum number of extra entries in a list of layers, which describe layers of draft heads."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A decoder or a draft head.

    Parameters
    ----------
    blocks
        Formulas for each layer, evaluated on demand. The entry ``weights`` contains the layer's
        tensors.
    outside
        Tensors of the part outside its layers.
    borrowed
        Tensors that belong to another part but are read by this part, such as the target's
        embeddings for a draft head.
    storage
        Storage formats of weights and cached values.
    layers
        Number of layers of a decoder, or number of additional layers for a draft head.
    kind
        Kind of a draft head; None for a decoder.
    unknown
        Names of the quantities that are unknown, because the table of field names does not cover
        the architecture.
    """

    blocks: Sequence[Formulas]
    outside: Sequence[Weight]
    borrowed: Sequence[Weight] = ()
    storage: Storage
    layers: int
    kind: str | None = None
    unknown: tuple[str, ...] = ()

    def _check_known(self, quantity: str) -> None:
        if quantity in self.unknown:
            raise Unsupported(f"{quantity}: cannot be counted for this model; specify it by hand")

    def _total(self, quantity: str) -> int:
        """Return the sum of a quantity over all layers."""
        return sum(int(block[quantity]) for block in self.blocks)

    @property
    def weights(self) -> list[Weight]:
        """All tensors of the part, excluding borrowed tensors."""
        return [*self.outside, *(weight for block in self.blocks for weight in block["weights"])]

    @property
    def parameters(self) -> int:
        """Number of parameters: matrices, embeddings, biases, norms and learned positions.

        Tied embeddings are counted once. Buffers (masks, vocabulary maps, router corrections) are
        not counted, because they are not trained.
        """
        return sum(weight.values for weight in self.weights)

    @property
    def active_parameters(self) -> int:
        """Number of parameters that are used for one token.

        All embeddings are included. Routed experts are included only if the token is routed to
        them.
        """
        return sum(weight.active_values for weight in self.weights)

    @property
    def routed_expert_parameters(self) -> int:
        """Number of parameters of routed experts; 0 if there are no experts."""
        return sum(weight.values for weight in self.weights if weight.role == "expert")

    @property
    def borrowed_parameters(self) -> int:
        """Number of parameters that the part borrows from another part."""
        return sum(weight.values for weight in self.borrowed)

    @property
    def weight_bytes(self) -> int:
        """Size of all parameters in their stored form, in bytes."""
        self._check_known("weight_bytes")
        return sum(map(self.storage.bytes, self.weights))

    @property
    def kv_bytes_per_token(self) -> int:
        """Growth of the KV cache per token, in bytes, in layers whose cache has no window.

        If the cache of every layer is limited by a window, the value is the growth up to the
        window.
        """
        self._check_known("kv_bytes_per_token")
        return self.growing_kv_bytes or self.window_kv_bytes

    @property
    def growing_kv_bytes(self) -> int:
        """Growth of the KV cache per token, in bytes, in layers whose cache has no window."""
        return self.storage.kv_value_bytes * self._total("kv_values")

    @property
    def window_kv_bytes(self) -> int:
        """Growth of the KV cache per token, in bytes, in layers whose cache has a window."""
        return self.storage.kv_value_bytes * self._total("window_values")

    @property
    def window(self) -> int | None:
        """Number of tokens after which caches with a window stop growing; None if there is no
        window.
        """
        return max((block["window"] for block in self.blocks), default=0) or None

    @property
    def state_bytes_per_sequence(self) -> int:
        """Size of a sequence's fixed-size states, in bytes. Each value has the size of a cached
        value.
        """
        return self.storage.kv_value_bytes * self._total("state_values")

    @property
    def flops_per_token(self) -> int:
        """Operations per new token, excluding attention scores and the output matrix.

        Each active entry of a matrix requires two operations.
        """
        return 2 * sum(
            weight.active_values
            for weight in self.weights
            if len(weight.shape) == 2 and weight.role in ("linear", "expert", "router")
        )

    @property
    def flops_per_token_pair(self) -> int:
        """Attention operations per pair of a new token and an attended token, ignoring windows."""
        return 2 * self._total("values_per_pair")

    @property
    def flops_per_logit(self) -> int:
        """Operations per position for the output matrix, which computes the logits."""
        return 2 * sum(
            weight.values
            for weight in (*self.weights, *self.borrowed)
            if weight.role in ("head", "tied")
        )

    @property
    def reads(self) -> WeightReads:
        """Number of weight bytes that a pass reads, as a function of the number of tokens."""
        dense = sum(
            self.storage.bytes(weight)
            for weight in (*self.weights, *self.borrowed)
            if weight.role not in ("expert", "table")
        )
        layers = Counter[ExpertLayers]()
        for block in self.blocks:
            experts = [weight for weight in block["weights"] if weight.role == "expert"]
            if experts:
                count = block["experts"]
                size = sum(self.storage.bytes(weight) // count for weight in experts)
                group = ExpertLayers(
                    layers=1,
                    experts=count,
                    experts_per_token=block["experts_per_token"],
                    expert_bytes=size,
                )
                layers[group] += 1
        return WeightReads(
            dense_bytes=dense,
            experts=tuple(replace(one, layers=number) for one, number in layers.items()),
        )


def read_layers(config: Config, place: str) -> list[Formulas]:
    """Return the formulas for each layer of a decoder, with the layer's tensors as ``weights``.

    `place` is the path of the layers in the model. The names of the layers' tensors begin with this
    path.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    lists = {
        name: listed_words(config, f"{name}_fields", f"{name}_names") for name in ("kind", "sparse")
    }
    layers = config.size(
        "num_hidden_layers", next(map(len, lists["kind"].values()), None), high=MAX_LAYERS
    )
    spare = MAX_DRAFT_LAYERS if "predicting" in config.type["understands"] else 0
    known: list[dict[str, Any]] = [{"layers": layers, "index": index} for index in range(layers)]
    for name, listed in lists.items():
        for path, words in listed.items():
            if not layers <= len(words) <= layers + spare:
                raise InvalidInput(f"{path}: expected {layers} entries, got {len(words)}")
            for layer in known:
                if layer.get(name, FULL) == FULL:  # other words take precedence
                    layer[name] = words[layer["index"]]
    return [
        read_layer(config.type, config.formulas.having(layer), f"{place}.{layer['index']}")
        for layer in known
    ]


def read_layer(kind: Entry, sizes: Formulas, place: str) -> Formulas:
    """Return the formulas for one layer of a decoder, with the layer's tensors as ``weights``.

    `kind` is the entry for the model type in the table `fields.toml`. The formulas in `sizes`
    include the index of the layer. The names of the layer's tensors begin with `place`.
    """
    word = one_of(
        f"{sizes.section.where}layer_types[{sizes['index']}]", sizes["kind"], kind["attention"]
    )
    form = ATTENTION[kind["attention"][word]]
    names = kind["names"]
    sizes = sizes.having(form)
    weights = [*sizes.tensors(form["tensors"], f"{place}.{names.get('mixer', form['name'])}.")]
    weights += sizes.tensors(kind["layer"], f"{place}.")
    for name in ("dense", "sparse"):
        if sizes[name]:
            inside = f"{place}.{names[name]}.".replace("..", ".")
            weights += sizes.tensors(TABLE["feed_forward"][name], inside, **names)
    sizes["weights"] = weights
    _ = sizes["quantities"]  # rejects invalid fields
    return sizes


def listed_words(config: Config, fields: str, names: str) -> dict[str, list[str]]:
    """Translate config fields that list a word for each layer, such as ``layer_types``.

    The result maps the path of each field that is present to a list of formulas, one for each
    layer. The formula is the meaning of the word. In the model type's entry in `fields.toml`, the
    key `fields` lists the names of such fields, and the key `names` contains the meanings.
    """
    found = {}
    meanings = config.type[names]
    for name in filter(config.get, config.type[fields]):
        given, path = config.get(name), config.path(name)
        words = sequence(path, list(given) if isinstance(given, str) else given)
        found[path] = [
            repr(meanings[one_of(f"{path}[{index}]", str(word), meanings)])
            for index, word in enumerate(words)
        ]
    return found


def read_decoder(config: Config, storage: Storage) -> Part:
    """Return a decoder whose model type is in the table `fields.toml`.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    config.check(config.type["fixed"])
    blocks = read_layers(config, f"{config.type['names']['model']}.layers")
    outside = blocks[0].tensors([*TABLE["decoder"]["tensors"], *config.type["outside"]])
    return Part(outside=[*outside], blocks=blocks, storage=storage, layers=len(blocks))


def read_prediction_head(config: Config, target: Part) -> tuple[Part, ...]:
    """Return the MTP head in a config, as a tuple with at most one entry.

    Each layer of the head uses a matrix to combine the normalised embedding with the normalised
    hidden state. Apart from this matrix and a final norm, the layer has the same shape as the
    target's last layer that caches values for every token. In Qwen models, all layers of the head
    share the matrix and the norms.
    """
    kind = config.type
    count = config.size(kind["drafts"], 0, 0, MAX_LAYERS) if kind["drafts"] else 0
    if not count or config.given("dspark_block_size"):
        for other in filter(config.get, TABLE["marks"]["predicting"]["fields"]):
            config.note(
                f"{other}: layers for drafting; they are not counted for {config.model_type}"
            )
        return ()
    listed = listed_words(config, "draft_fields", "kind_names").values()
    known = [{"kind": word} for words in listed for word in words] or kind["draft_layers"]
    caching = [block for block in target.blocks if block["kv_values"] + block["window_values"]]
    sizes = [
        config.formulas.having(item | {"layers": target.layers, "index": target.layers})
        for item in known
    ] or [*target.blocks, *caching][-1:]
    blocks = list[Formulas]()
    outside = [*sizes[0].tensors(kind["draft_once"])]
    for index in range(count):
        name = kind["draft_place"].format(index, target.layers + index)
        blocks += [read_layer(kind, item, name) for item in sizes]
        outside += sizes[0].tensors(kind["draft_each"], f"{name}.")
    borrowed = [
        weight for weight in target.outside if weight.name in ("model.embed_tokens", "lm_head")
    ]
    config.note(f"mtp: a draft head, counted separately (layers: {count})")
    return (
        Part(
            kind="mtp",
            layers=count,
            blocks=blocks,
            outside=outside,
            borrowed=borrowed,
            storage=target.storage,
        ),
    )


def head_kind(config: Config) -> str | None:
    """Return the kind of draft head that a config describes, or None if it describes a decoder."""
    names = config.whole.get("architectures")
    for name in names if isinstance(names, list) else []:
        for kind, head in HEADS.items():
            if name in head["classes"]:
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
    only_fields(own, HEADS["dflash"]["fields"], "dflash_config")
    config.data = {
        name: value
        for section in (
            own,
            config.whole.inside("eagle_config", {}).data,
            config.whole.data,
            config.data,
        )
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
