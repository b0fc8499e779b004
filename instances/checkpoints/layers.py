"""The layers of a decoder from its config, and all its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from specopt.instances.checkpoints.attention import GroupedAttention, LatentAttention, LinearAttention, Mixer
from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.experts import Experts, FeedForward
from specopt.instances.checkpoints.weights import Weight, matrix, under, vector
from specopt.models.arguments import integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer: what mixes tokens, what works on each of them, norms.

    Parameters
    ----------
    mixer
        Attention, or what stands in its place.
    network, experts
        The dense network, experts, or both beside each other.
    norms, norm_values
        Norms of the hidden size, and their values per dimension.
    hidden
        The hidden size.
    side
        Dimension of what a layer's own table of embeddings adds behind it; 0: there is none.
    """

    mixer: Mixer
    network: FeedForward | None
    experts: Experts | None
    norms: int
    norm_values: int
    hidden: int
    side: int = 0

    def weights(self) -> Iterator[Weight]:
        """Yield all tensors."""
        yield from under(self.mixer.name, self.mixer.weights())
        for network in (self.network, self.experts):
            if network is not None:
                yield from under("mlp", network.weights())
        yield vector("norms", self.norms, self.norm_values, self.hidden)
        if self.side:
            yield from matrix("per_layer_input_gate", self.side, self.hidden)
            yield from matrix("per_layer_projection", self.hidden, self.side)
            yield vector("post_per_layer_input_norm", self.hidden)


def read_layers(fields: Fields) -> list[Layer]:
    """Return the layers that a config describes.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    kind = fields.type
    hidden = fields.size("hidden_size")
    experts = _experts(fields, hidden)
    norms = kind.norms_per_layer
    if experts is not None and experts.scaled:
        norms += 3
    sparse = _layers_with_experts(fields) if experts is not None else set()
    both = kind.experts is not None and kind.experts.beside
    dense = _dense(fields, hidden) if both or len(sparse) < fields.size("num_hidden_layers") else None
    mixers = {name: _mixer(fields, hidden, name) for name in dict.fromkeys(layer_kinds(fields))}
    layers = [
        Layer(
            mixer=mixers[name],
            network=dense if both or index not in sparse else None,
            experts=experts if index in sparse else None,
            norms=norms,
            norm_values=norm_values(fields),
            hidden=hidden,
        )
        for index, name in enumerate(layer_kinds(fields))
    ]
    return _unequal(fields, layers) if kind.unequal else layers


def _unequal(fields: Fields, layers: list[Layer]) -> list[Layer]:
    """Return the layers with embeddings of their own, the last ones without keys and values, if the config says so."""
    side, borrowing = side_size(fields), fields.size("num_kv_shared_layers", 0, low=0)
    wide = fields.flag("use_double_wide_mlp", False)
    found = [replace(layer, side=side) for layer in layers]
    for index in range(max(0, len(layers) - borrowing), len(layers)):
        mixer, network = found[index].mixer, found[index].network
        assert isinstance(mixer, GroupedAttention) and network is not None
        ffn = 2 * network.ffn if wide else network.ffn
        found[index] = replace(found[index], mixer=replace(mixer, own_cache=False), network=replace(network, ffn=ffn))
    return found


def side_size(fields: Fields) -> int:
    """Return the dimension of the tables of embeddings that layers have of their own; 0: there are none."""
    return fields.size("hidden_size_per_layer_input", low=0) if fields.type.unequal else 0


def norm_values(fields: Fields) -> int:
    """Return the values per dimension of a norm: 2 (weight and bias), 1 (weight) or 0."""
    if fields.model_type == "opt" and not fields.flag("layer_norm_elementwise_affine", True):
        return 0
    return 2 if fields.type.layer_norm else 1


def layer_kinds(fields: Fields) -> list[str]:
    """Return what each layer attends to: everything, a window, or nothing but a state."""
    layers, rule = fields.size("num_hidden_layers"), fields.type.layer_kinds
    given = fields.get("layer_types")
    if given is not None:
        where = f"{fields.where}layer_types"
        allowed = (FULL, LINEAR) if rule == "linear between" else (FULL, SLIDING)
        if not isinstance(given, list) or len(given) != layers:
            raise InvalidInput(f"{where}: expected {layers} names, got {describe(given)}")
        return [one_of(f"{where}[{index}]", item, allowed) for index, item in enumerate(given)]
    if rule == "window":
        return [SLIDING] * layers
    if rule == "window above" and fields.flag("use_sliding_window", False):
        first = fields.size("max_window_layers", low=0)
        return [FULL if index < first else SLIDING for index in range(layers)]
    if rule in ("windows between", "linear between"):
        name, default = fields.type.period
        period = fields.size(name, default)
        other = SLIDING if rule == "windows between" else LINEAR
        return [FULL if (index + 1) % period == 0 else other for index in range(layers)]
    return [FULL] * layers


def _mixer(fields: Fields, hidden: int, name: str) -> Mixer:
    if name == LINEAR:
        return LinearAttention(
            hidden=hidden,
            key_heads=fields.size("linear_num_key_heads"),
            value_heads=fields.size("linear_num_value_heads"),
            key_dim=fields.size("linear_key_head_dim"),
            value_dim=fields.size("linear_value_head_dim"),
            kernel=fields.size("linear_conv_kernel_dim"),
        )
    heads = fields.size("num_attention_heads")
    if fields.type.latent:
        return LatentAttention(
            hidden=hidden,
            heads=heads,
            kv_rank=fields.size("kv_lora_rank"),
            query_rank=fields.size("q_lora_rank", 0),
            plain_dim=fields.size("qk_nope_head_dim"),
            rotary_dim=fields.size("qk_rope_head_dim"),
            value_dim=fields.size("v_head_dim"),
            bias=fields.switch(fields.type.qkv_bias),
        )
    return read_attention(fields, hidden, name)


def read_attention(fields: Fields, hidden: int, name: str = FULL, inputs: int = 0) -> GroupedAttention:
    """Return a layer's attention with grouped heads."""
    kind = fields.type
    heads = fields.size("num_attention_heads")
    kv_heads, head_dim = _kv_heads(fields, heads), _head_dim(fields, hidden, heads)
    whole = kind.unequal and name == FULL
    shared = whole and fields.flag("attention_k_eq_v", False)
    if whole:
        head_dim = fields.size("global_head_dim", head_dim)
    if shared:
        kv_heads = fields.size("num_global_key_value_heads", kv_heads)
    return GroupedAttention(
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        inputs=inputs,
        qkv_bias=fields.switch(kind.qkv_bias),
        output_bias=fields.switch(kind.output_bias),
        norm_values=norm_values(fields) if fields.switch(kind.query_key_norm) else 0,
        gated=kind.gated_queries,
        keys_are_values=shared,
        sinks=kind.sinks,
        window=fields.size("sliding_window") if name == SLIDING and fields.get("sliding_window") is not None else None,
    )


def _dense(fields: Fields, hidden: int) -> FeedForward:
    kind = fields.type
    return FeedForward(hidden=hidden, ffn=fields.size(kind.ffn), gated=kind.gated, bias=fields.switch(kind.mlp_bias))


def _experts(fields: Fields, hidden: int) -> Experts | None:
    names = fields.type.experts
    if names is None or (names.on is not None and not fields.flag(names.on, False)):
        return None
    count, per_token, ffn = (fields.size(name) for name in (names.count, names.per_token, names.ffn))
    if per_token > count:
        raise InvalidInput(
            f"{fields.where}{names.per_token}: expected at most {names.count} = {count}, got {per_token}"
        )
    shared = 0
    if names.shared_count is not None:
        shared = fields.size(names.shared_count, 0, low=0) * ffn
    elif names.shared_ffn is not None:
        shared = fields.size(names.shared_ffn, low=0)
    return Experts(
        network=FeedForward(hidden=hidden, ffn=ffn, bias=names.bias),
        count=count,
        per_token=per_token,
        shared_ffn=shared,
        shared_gate=names.shared_ffn is not None,
        router="router" if names.beside or names.bias else "gate",
        router_bias=names.bias,
        scaled=names.beside,
    )


def _layers_with_experts(fields: Fields) -> set[int]:
    """Return which layers have experts."""
    names, layers = fields.type.experts, fields.size("num_hidden_layers")
    if names is None:
        return set()
    first = 0 if names.first_dense is None else fields.size(names.first_dense, low=0)
    dense = set(range(first))
    if names.period == "decoder_sparse_step":  # counted from 1, with exceptions by index
        step, where = fields.size(names.period, 1), f"{fields.where}mlp_only_layers"
        listed = sequence(where, fields.get("mlp_only_layers") or [])
        dense |= {integer(where, index, 0, MAX_TOKENS) for index in listed}
        dense |= {index for index in range(layers) if (index + 1) % step}
    elif names.period is not None:
        step = fields.size(names.period, 1)
        dense |= {index for index in range(layers) if index % step}
    return set(range(layers)) - dense


def _kv_heads(fields: Fields, heads: int) -> int:
    name, rule = "num_key_value_heads", fields.type.kv_heads
    if rule == "given" and name not in fields.type.defaults and name not in fields.part:
        raise InvalidInput(
            f"{fields.where}{name}: required field is missing (the default of {fields.model_type} is not the number of"
            " heads; null means that it is)"
        )
    means_heads = fields.part.get(name) is None and (rule != "given" or name in fields.part)
    found = heads if means_heads else fields.size(name)
    if rule == "none" and found != heads:
        raise InvalidInput(f"{fields.where}{name}: {fields.model_type} has no grouped heads; got {found} for {heads}")
    if found > heads or heads % found:
        raise InvalidInput(f"{fields.where}{name}: expected a divisor of num_attention_heads = {heads}, got {found}")
    return found


def _head_dim(fields: Fields, hidden: int, heads: int) -> int:
    rule = fields.type.head_dim
    if fields.get("head_dim") is not None or rule == "given":
        found = fields.size("head_dim")
        if rule == "none" and found * heads != hidden:
            raise InvalidInput(
                f"{fields.where}head_dim: {fields.model_type} has hidden_size / num_attention_heads ="
                f" {hidden} / {heads}, got {found}"
            )
        return found
    if hidden % heads:
        raise InvalidInput(
            f"{fields.where}num_attention_heads: expected a divisor of hidden_size = {hidden} where head_dim is"
            f" absent, got {heads}"
        )
    return hidden // heads
