"""The layers of a decoder, read from its config, and the parameter counts and costs of decoders and
draft heads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specopt.instances.checkpoints.config import (
    ATTENTION,
    MAX_LAYERS,
    TABLE,
    Config,
    Entry,
    Formulas,
    Weight,
)
from specopt.instances.checkpoints.quantisation import Storage
from specopt.models.arguments import one_of, sequence
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
        Formulas for each layer. The entry "weights" contains the layer's tensors.
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

    def _stored_bytes(self, values: str) -> int:
        return self.storage.kv_value_bytes * sum(block[values] for block in self.blocks)

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
        return self._stored_bytes("kv_values")

    @property
    def window_kv_bytes(self) -> int:
        """Growth of the KV cache per token, in bytes, in layers whose cache has a window."""
        return self._stored_bytes("window_values")

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
        return self._stored_bytes("state_values")

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
        return 2 * sum(block["values_per_pair"] for block in self.blocks)

    @property
    def flops_per_logit(self) -> int:
        """Operations of the output matrix per position."""
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
        layers = Counter[tuple[int, int, int]]()
        for block in self.blocks:
            experts = [weight for weight in block["weights"] if weight.role == "expert"]
            if experts:
                count = block["experts"]
                size = sum(self.storage.bytes(weight) // count for weight in experts)
                layers[count, block["experts_per_token"], size] += 1
        return WeightReads(
            dense_bytes=dense,
            experts=tuple(
                ExpertLayers(
                    layers=number, experts=count, experts_per_token=active, expert_bytes=size
                )
                for (count, active, size), number in layers.items()
            ),
        )


def read_layers(config: Config, place: str) -> list[Formulas]:
    """Return the layers in a config.

    `place` is the path of the layers in the model. The names of the layers' tensors begin with this
    path.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    kind = config.type
    lists = {
        name: listed_words(config, f"{name}_fields", f"{name}_names") for name in ("kind", "sparse")
    }
    lengths = map(len, lists["kind"].values())
    layers = config.size("num_hidden_layers", next(lengths, None), high=MAX_LAYERS)
    spare = MAX_DRAFT_LAYERS if "predicting" in kind["understands"] else 0
    known: list[dict[str, Any]] = [{"layers": layers, "index": index} for index in range(layers)]
    for name, listed in lists.items():
        for path, words in listed.items():
            if not layers <= len(words) <= layers + spare:
                raise InvalidInput(f"{path}: expected {layers} entries, got {len(words)}")
            for index, layer in enumerate(known):
                if layer.get(name, FULL) == FULL:  # other words take precedence
                    layer[name] = words[index]
    return [
        read_layer(kind, config.formulas.having(layer), f"{place}.{layer['index']}")
        for layer in known
    ]


def read_layer(kind: Entry, sizes: Formulas, place: str) -> Formulas:
    """Return the formulas for one layer of a model type, with the layer's tensors as `weights`.

    The formulas in `sizes` include the index of the layer.
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
    for name in ("kv_values", "window", "window_values", "state_values", "values_per_pair"):
        sizes[name]  # rejects invalid fields
    return sizes


def listed_words(config: Config, fields: str, names: str) -> dict[str, list[str]]:
    """Translate per-layer lists of words. For each field that is present, map its path to a list
    with a formula for each layer, namely the meaning of the layer's word.

    `fields` and `names` are keys of the model type's entry in the table.
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
