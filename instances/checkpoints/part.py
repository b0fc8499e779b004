"""A part of a model that runs as one: its counts, in values and in bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specopt.instances.checkpoints.attention import Attention
from specopt.instances.checkpoints.quantisation import Storage
from specopt.instances.checkpoints.tensors import Weight
from specopt.models.errors import Unsupported
from specopt.models.pass_time.weight_reads import ExpertLayers, WeightReads


@dataclass(frozen=True, kw_only=True)
class Part:
    """A decoder, or a draft head on one.

    Parameters
    ----------
    weights
        All tensors that it holds.
    borrowed
        Tensors of another part that it reads: a draft head uses embeddings of its target.
    attention
        What mixes tokens, layer by layer.
    storage
        How weights and cached values are kept.
    layers
        Number of decoder layers.
    kind
        Kind of a draft head; None for a decoder.
    unknown
        Names of the quantities that are not known, because the table of field names does not cover the architecture.
    """

    weights: tuple[Weight, ...]
    borrowed: tuple[Weight, ...] = ()
    attention: tuple[Attention, ...]
    storage: Storage
    layers: int
    kind: str | None = None
    unknown: tuple[str, ...] = ()

    def _check_known(self, quantity: str) -> None:
        if quantity in self.unknown:
            raise Unsupported(f"{quantity}: cannot be counted for this model; give it by hand")

    @property
    def parameters(self) -> int:
        """All parameters: matrices, embeddings (once if tied), biases, norms, learned positions.

        Buffers, which are not trained, do not count: masks, maps of vocabularies, corrections of routers.
        """
        return sum(weight.values for weight in self.weights)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token needs: of routed experts, only those that it is routed to; embeddings in full."""
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
        return self.storage.kv_value_bytes * sum(item.kv_values for item in self.attention)

    @property
    def window_kv_bytes(self) -> int:
        """Bytes of the KV cache per token, of the layers whose cache stops growing at `window`."""
        return self.storage.kv_value_bytes * sum(item.window_values for item in self.attention)

    @property
    def window(self) -> int | None:
        """Tokens after which those caches stop growing; None: there are none."""
        return max((item.window for item in self.attention), default=0) or None

    @property
    def state_bytes_per_sequence(self) -> int:
        """Bytes of states that do not grow, at the size of a cached value."""
        return self.storage.kv_value_bytes * sum(item.state_values for item in self.attention)

    @property
    def flops_per_token(self) -> int:
        """Operations per new token, attention scores and output matrix aside: two per active entry of a matrix."""
        return 2 * sum(weight.active_values for weight in self.weights if weight.is_matrix)

    @property
    def flops_per_token_pair(self) -> int:
        """Attention operations per new token and token attended to, windows aside."""
        return 2 * sum(item.values_per_pair for item in self.attention)

    @property
    def flops_per_logit(self) -> int:
        """Operations of the output matrix per position."""
        return 2 * sum(weight.values for weight in (*self.weights, *self.borrowed) if weight.role in ("head", "tied"))

    @property
    def reads(self) -> WeightReads:
        """The bytes of weights that a pass over some tokens reads."""
        dense, groups = 0, dict[str, tuple[int, int, int]]()
        for weight in (*self.weights, *self.borrowed):
            size = self.storage.bytes(weight)
            if weight.role == "expert":
                layer = weight.name.partition(".experts.")[0]
                before = groups.get(layer, (0, 0, 0))[2]
                groups[layer] = weight.copies, weight.active, before + size // weight.copies
            elif weight.role != "table":
                dense += size
        return WeightReads(
            dense_bytes=dense,
            experts=tuple(
                ExpertLayers(layers=layers, experts=experts, experts_per_token=active, expert_bytes=size)
                for (experts, active, size), layers in Counter(groups.values()).items()
            ),
        )
