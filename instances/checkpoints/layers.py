"""The layers of a decoder from its config, and the counts of a part of a model that runs as one."""

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
"""Largest number of layers of draft heads that a list of layers may have behind those of the
decoder.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """One layer.

    Parameters
    ----------
    what
        Name of its form of attention in notes; empty for grouped attention.
    weights
        All its tensors.
    window
        Tokens after which `window_values` stop growing; 0 if there is no window.
    kv_values, window_values
        Values cached per token, for all of the context and up to the window.
    state_values
        Values kept per sequence, whatever its length.
    values_per_pair
        Multiplications per new token and token attended to; where an indexer chooses, as if all
        tokens were chosen.
    sizes
        The formulas of its type and its form of attention, evaluated for it.
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
    """A decoder, or a draft head on one.

    Parameters
    ----------
    blocks
        Its layers.
    outside
        Tensors that it holds next to those of its layers.
    borrowed
        Tensors of another part that it reads: a draft head uses embeddings of its target.
    storage
        How weights and cached values are kept.
    layers
        Number of decoder layers; for a draft head, of those that it adds.
    kind
        Kind of a draft head; None for a decoder.
    unknown
        Names of the quantities that are not known, because the table of field names does not cover
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
            raise Unsupported(f"{quantity}: cannot be counted for this model; give it by hand")

    @property
    def weights(self) -> list[Weight]:
        """All tensors that it holds."""
        return [*self.outside, *(weight for block in self.blocks for weight in block.weights)]

    @property
    def parameters(self) -> int:
        """All parameters: matrices, embeddings (once if tied), biases, norms, learned positions.

        Buffers, which are not trained, do not count: masks, maps of vocabularies, corrections of
        routers.
        """
        return sum(weight.values for weight in self.weights)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token needs: of routed experts, only those that it is routed to;
        embeddings in full.
        """
        return sum(weight.active_values for weight in self.weights)

    @property
    def routed_expert_parameters(self) -> int:
        """Parameters of the experts that a router chooses from; 0 if there is none."""
        return sum(weight.values for weight in self.weights if weight.role == "expert")

    @property
    def borrowed_parameters(self) -> int:
        """Parameters of another part that it uses."""
        return sum(weight.values for weight in self.borrowed)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters, as they are stored."""
        self._check_known("weight_bytes")
        return sum(map(self.storage.bytes, self.weights))

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the KV cache per token, of the layers whose cache grows with the context.

        If every cache stops growing at a window, those are counted: it is the growth up to there.
        """
        self._check_known("kv_bytes_per_token")
        return self.growing_kv_bytes or self.window_kv_bytes

    @property
    def growing_kv_bytes(self) -> int:
        """Bytes of the KV cache per token, without layers whose cache stops growing at a window."""
        return self.storage.kv_value_bytes * sum(block.kv_values for block in self.blocks)

    @property
    def window_kv_bytes(self) -> int:
        """Bytes of the KV cache per token, of the layers whose cache stops growing at `window`."""
        return self.storage.kv_value_bytes * sum(block.window_values for block in self.blocks)

    @property
    def window(self) -> int | None:
        """Tokens after which those caches stop growing; None: there are none."""
        return max((block.window for block in self.blocks), default=0) or None

    @property
    def state_bytes_per_sequence(self) -> int:
        """Bytes of states that do not grow, at the size of a cached value."""
        return self.storage.kv_value_bytes * sum(block.state_values for block in self.blocks)

    @property
    def flops_per_token(self) -> int:
        """Operations per new token, attention scores and output matrix aside: two per active entry
        of a matrix.
        """
        return 2 * sum(weight.active_values for weight in self.weights if weight.is_matrix)

    @property
    def flops_per_token_pair(self) -> int:
        """Attention operations per new token and token attended to, windows aside."""
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
        """The bytes of weights that a pass over some tokens reads."""
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
    """Return the layers that a config describes, with tensors named after a place in the model.

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
            if listed:  # a word that is not about full attention goes before
                word = max(
                    (words[index] for words in listed.values()), key=lambda word: word != FULL
                )
                known[name] = repr(word)
        found.append(read_layer(kind, config.formulas.having(known), f"{place}.{index}"))
    return found


def read_layer(kind: Entry, sizes: Formulas, place: str) -> Layer:
    """Return a layer of a model type whose index is among its formulas."""
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
    """Return the meaning of each layer's word, for those fields that are lists of words."""
    found = {}
    for name in filter(config.get, fields):
        given, path = config.get(name), config.path(name)
        words = sequence(path, list(given) if isinstance(given, str) else given)
        found[name] = [
            meanings[one_of(f"{path}[{index}]", str(word), meanings)]
            for index, word in enumerate(words)
        ]
    return found
