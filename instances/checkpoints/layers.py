"""The layers of a decoder, read from its config, and the parameter counts and costs of decoders and
draft heads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.fields import ATTENTION, TABLE, Entry, Formulas, Weight
from specopt.instances.checkpoints.quantisation import Storage
from specopt.models.arguments import one_of, sequence
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.pass_time.weight_reads import ExpertLayers, WeightReads

FULL = "full_attention"

MAX_DRAFT_LAYERS = 8
"""Maximum number of extra entries in a list of layers, which describe layers of draft heads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """One layer of a decoder.

    Parameters
    ----------
    what
        Name that notes use for the form of attention; empty for grouped attention.
    weights
        Tensors of the layer.
    window
        Number of tokens after which the cache of windowed values stops growing; 0 if there is no
        window.
    kv_values
        Number of values cached per token, for the whole context.
    window_values
        Number of values cached per token, for at most `window` tokens.
    state_values
        Number of values stored per sequence, independent of the sequence length.
    values_per_pair
        Number of multiplications per pair of a new token and a token that it attends to. If an
        indexer selects tokens, all tokens are counted.
    sizes
        Formulas for the model type and the form of attention, evaluated for this layer.
    """

    what: str
    weights: tuple[Weight, ...]
    window: int
    kv_values: int
    window_values: int
    state_values: int
    values_per_pair: int
    sizes: Formulas


VALUES = ("window", "kv_values", "window_values", "state_values", "values_per_pair")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A decoder or a draft head.

    Parameters
    ----------
    blocks
        Layers of the part.
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

    blocks: Sequence[Layer]
    outside: Sequence[Weight]
    borrowed: Sequence[Weight] = ()
    storage: Storage
    layers: int
    kind: str | None = None
    unknown: tuple[str, ...] = ()

    def _check_known(self, quantity: str) -> None:
        if quantity in self.unknown:
            raise Unsupported(f"{quantity}: cannot be counted for this model; specify it by hand")

    @property
    def weights(self) -> list[Weight]:
        """All tensors of the part, excluding borrowed tensors."""
        return [*self.outside, *(weight for block in self.blocks for weight in block.weights)]

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
        return self.storage.kv_value_bytes * sum(block.kv_values for block in self.blocks)

    @property
    def window_kv_bytes(self) -> int:
        """Growth of the KV cache per token, in bytes, in layers whose cache has a window."""
        return self.storage.kv_value_bytes * sum(block.window_values for block in self.blocks)

    @property
    def window(self) -> int | None:
        """Number of tokens after which caches with a window stop growing; None if there is no
        window.
        """
        return max((block.window for block in self.blocks), default=0) or None

    @property
    def state_bytes_per_sequence(self) -> int:
        """Size of a sequence's fixed-size states, in bytes. Each value has the size of a cached
        value.
        """
        return self.storage.kv_value_bytes * sum(block.state_values for block in self.blocks)

    @property
    def flops_per_token(self) -> int:
        """Operations per new token, excluding attention scores and the output matrix.

        Each active entry of a matrix requires two operations.
        """
        return 2 * sum(weight.active_values for weight in self.weights if weight.is_matrix)

    @property
    def flops_per_token_pair(self) -> int:
        """Attention operations per pair of a new token and an attended token, ignoring windows."""
        return 2 * sum(block.values_per_pair for block in self.blocks)

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
        dense, experts = 0, Counter[tuple[str, int, int]]()
        for weight in (*self.weights, *self.borrowed):
            size = self.storage.bytes(weight)
            if weight.role == "expert":
                layer = weight.name.partition(".experts.")[0]
                experts[layer, weight.copies, weight.active] += size // weight.copies
            elif weight.role != "table":
                dense += size
        alike = Counter((count, active, size) for (_, count, active), size in experts.items())
        return WeightReads(
            dense_bytes=dense,
            experts=tuple(
                ExpertLayers(
                    layers=layers, experts=count, experts_per_token=active, expert_bytes=size
                )
                for (count, active, size), layers in alike.items()
            ),
        )


def read_layers(config: Config, place: str) -> list[Layer]:
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
        name: listed_words(config, kind[f"{name}_fields"], kind[f"{name}_names"])
        for name in ("kind", "sparse")
    }
    layers = config.size("num_hidden_layers", *map(len, list(lists["kind"].values())[:1]))
    spare = MAX_DRAFT_LAYERS if "predicting" in kind["understands"] else 0
    for name, words in {**lists["kind"], **lists["sparse"]}.items():
        if not layers <= len(words) <= layers + spare:
            raise InvalidInput(f"{config.path(name)}: expected {layers} entries, got {len(words)}")
    found = list[Layer]()
    for index in range(layers):
        known: dict[str, Any] = {"layers": layers, "index": index}
        for name, listed in lists.items():
            if listed:  # a word other than "full attention" takes precedence
                word = max(
                    (words[index] for words in listed.values()), key=lambda word: word != FULL
                )
                known[name] = repr(word)
        found.append(read_layer(kind, config.formulas.having(known), f"{place}.{index}"))
    return found


def read_layer(kind: Entry, sizes: Formulas, place: str) -> Layer:
    """Return one layer of a model type. The formulas in `sizes` include the index of the layer."""
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
    return Layer(
        what=form["what"],
        weights=tuple(weights),
        sizes=sizes,
        **{name: sizes[name] for name in VALUES},
    )


def listed_words(
    config: Config, fields: list[str], meanings: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Translate per-layer lists of words. For each field that is present, return a list with the
    meaning of each layer's word.
    """
    found = {}
    for name in filter(config.get, fields):
        given, path = config.get(name), config.path(name)
        words = sequence(path, list(given) if isinstance(given, str) else given)
        found[name] = [
            meanings[one_of(f"{path}[{index}]", str(word), meanings)]
            for index, word in enumerate(words)
        ]
    return found
