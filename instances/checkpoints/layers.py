"""The layers of a decoder from its config, and all its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from specopt.instances.checkpoints.attention import GroupedAttention, Mixer
from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.experts import Experts, FeedForward
from specopt.instances.checkpoints.forms import Sizes, read_mixer
from specopt.instances.checkpoints.model_types import DENSE, FORMS, FULL, SLIDING, SPARSE
from specopt.instances.checkpoints.weights import Weight, matrix, under, vector
from specopt.models.arguments import integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

NO_MIXER = Mixer()

MAX_DRAFT_LAYERS = 8
"""Most layers of draft heads that a list of kinds may have behind those of the decoder."""

EXPERTS_HERE = {"sparse": True, "moe": True, "hash_moe": True, "1": True, "dense": False, "0": False}


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
    network_name
        What checkpoints call the dense network.
    side
        Dimension of what a layer's own table of embeddings adds behind it; 0: there is none.
    further
        Tensors that its type alone has.
    """

    mixer: Mixer
    network: FeedForward | None
    experts: Experts | None
    norms: int
    norm_values: int
    hidden: int
    network_name: str = "mlp"
    side: int = 0
    further: tuple[Weight, ...] = ()

    def weights(self) -> Iterator[Weight]:
        """Yield all tensors."""
        yield from under(self.mixer.name, self.mixer.weights())
        if self.network is not None:
            yield from under(self.network_name, self.network.weights())
        if self.experts is not None:
            yield from under(self.experts.name, self.experts.weights())
        yield vector("norms", self.norms, self.norm_values, self.hidden)
        yield from self.further
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
    kinds = layer_kinds(fields)
    sparse = _layers_with_experts(fields, len(kinds))
    read = dict[tuple[str, bool], Layer]()
    for index, name in enumerate(kinds):
        if (name, index in sparse) not in read:
            read[name, index in sparse] = read_layer(fields, name, sparse=index in sparse)
    layers = [read[name, index in sparse] for index, name in enumerate(kinds)]
    return _unequal(fields, layers) if fields.type.unequal else layers


def read_layer(fields: Fields, name: str, *, sparse: bool) -> Layer:
    """Return a layer of a kind, with or without experts."""
    kind, hidden = fields.type, fields.size("hidden_size")
    if kind.alone:
        sparse, dense, mixes = name == SPARSE, name == DENSE, name not in (SPARSE, DENSE)
    else:
        dense, mixes = not sparse or (kind.experts is not None and kind.experts.beside), True
    mixer = _mixer(fields, hidden, name) if mixes else NO_MIXER
    experts = _experts(fields, hidden) if sparse else None
    return Layer(
        mixer=replace(mixer, name=kind.mixer or mixer.name),
        network=_dense(fields, hidden) if dense else None,
        experts=experts,
        norms=1 if kind.alone else kind.norms_per_layer + (3 if experts is not None and experts.scaled else 0),
        norm_values=norm_values(fields),
        hidden=hidden,
        network_name=kind.network,
        further=tuple(Sizes(fields).tensors(kind.layer)),
    )


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
    """Return the kind of each layer."""
    kind = fields.type
    rule, found = kind.layer_kinds, list[str]()
    for name in kind.kind_fields:
        given = named_kinds(fields, name)
        if given is not None:  # the first word that is not about full attention counts
            found = [before if before != FULL else now for before, now in zip(found or given, given, strict=True)]
    layers = fields.size("num_hidden_layers", len(found) or None)
    if found:
        return found
    if kind.kind_lists and any(fields.get(name) is not None for name in kind.kind_lists):
        return _listed_kinds(fields, layers)
    if rule == "given":
        raise InvalidInput(f"{fields.where}{kind.kind_fields[0]}: required field is missing")
    if rule == "listed":
        where = f"{fields.where}{kind.period[0]}"
        full = {_index(where, item) for item in sequence(where, fields.get(kind.period[0]))}
        return [FULL if index in full else kind.other for index in range(layers)]
    if rule == "window":
        return [SLIDING] * layers
    if rule == "window above" and fields.flag("use_sliding_window", False):
        first = fields.size("max_window_layers", low=0)
        return [FULL if index < first else SLIDING for index in range(layers)]
    if "between" in rule:
        name, default, offset = kind.period
        period = fields.size(name, default)
        first = fields.size(offset, kind.optional.get(offset), low=0) if offset else period - 1
        early, first = (first, first - 1) if rule == "first, then between" else (0, first)
        return [FULL if index < early or (index - first) % period == 0 else kind.other for index in range(layers)]
    return [FULL] * layers


def named_kinds(fields: Fields, name: str) -> list[str] | None:
    """Return the kinds of layers as a field lists them, without those of draft heads behind them."""
    given, kind = fields.get(name), fields.type
    if given is None or given == []:
        return None
    where, layers = f"{fields.where}{name}", fields.get("num_hidden_layers")
    if not isinstance(given, list | str):
        raise InvalidInput(f"{where}: expected a list, got {describe(given)}")
    if layers is not None and name not in kind.draft_fields:
        layers = fields.size("num_hidden_layers")
        spare = MAX_DRAFT_LAYERS if "predicting" in kind.marks else 0
        if not layers <= len(given) <= layers + spare:
            raise InvalidInput(f"{where}: expected {layers} names, got {describe(given)}")
        given = given[:layers]
    known = tuple(kind.kind_names)
    return [kind.kind_names[one_of(f"{where}[{index}]", str(item), known)] for index, item in enumerate(given)]


def _listed_kinds(fields: Fields, layers: int) -> list[str]:
    found = dict[int, str]()
    for name, kind in fields.type.kind_lists.items():
        where = f"{fields.where}{name}"
        for item in sequence(where, fields.get(name)):
            found[integer(where, item, 1, layers)] = kind
    missing = sorted(set(range(1, layers + 1)) - set(found))
    if missing:
        names = ", ".join(fields.type.kind_lists)
        raise InvalidInput(f"{fields.where}{names}: expected every layer in one of them, got none for {missing[0]}")
    return [found[index] for index in range(1, layers + 1)]


def _mixer(fields: Fields, hidden: int, name: str) -> Mixer:
    form = fields.type.forms.get(name)
    return read_attention(fields, hidden, name) if form is None else read_mixer(fields, FORMS[form])


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
        window=fields.size(kind.window) if name == SLIDING and fields.get(kind.window) is not None else None,
    )


def _dense(fields: Fields, hidden: int) -> FeedForward:
    kind = fields.type
    return FeedForward(hidden=hidden, ffn=fields.size(kind.ffn), gated=kind.gated, bias=fields.switch(kind.mlp_bias))


def _experts(fields: Fields, hidden: int) -> Experts:
    names, sizes = fields.type.experts, Sizes(fields)
    assert names is not None
    count, per_token, ffn = (fields.size(name) for name in (names.count, names.per_token, names.ffn))
    if per_token > count:
        raise InvalidInput(
            f"{fields.where}{names.per_token}: expected at most {names.count} = {count}, got {per_token}"
        )
    inner = sizes(names.inner)
    return Experts(
        network=FeedForward(hidden=inner or hidden, ffn=ffn, gated=fields.type.gated, bias=names.bias),
        hidden=hidden,
        count=count,
        per_token=per_token,
        shared_ffn=Sizes(fields, low=0)(names.shared),
        shared_gate=names.weighted,
        inner_norm=bool(sizes(names.inner_norm)),
        name=names.name,
        router=names.router,
        shared=names.shared_name,
        router_bias=names.bias,
        scaled=names.scaled,
    )


def _layers_with_experts(fields: Fields, layers: int) -> set[int]:
    """Return which layers have experts."""
    names, everyone = fields.type.experts, set(range(layers))
    if names is None or not Sizes(fields)(names.on):
        return set()
    for name in names.named:
        if isinstance(given := fields.get(name), list):
            where = f"{fields.where}{name}"
            if len(given) < layers:
                raise InvalidInput(f"{where}: expected {layers} entries, got {len(given)}")
            return {
                at for at in everyone if EXPERTS_HERE[one_of(f"{where}[{at}]", str(given[at]), tuple(EXPERTS_HERE))]
            }
    for name in names.listed:
        if (given := fields.get(name)) is not None:
            where = f"{fields.where}{name}"
            items = given.split(",") if isinstance(given, str) else sequence(where, given)
            return {_index(where, item) for item in items} & everyone
    dense = set(range(Sizes(fields, low=0)(names.first_dense)))
    if names.period is not None:
        step = fields.size(names.period, 1)
        start = step - 1 if names.last_of_period else 0
        if names.offset is not None:
            start = fields.size(names.offset, low=0)
        dense |= {index for index in everyone if (index - start) % step}
    where = f"{fields.where}mlp_only_layers"
    dense |= {integer(where, index, 0, MAX_TOKENS) for index in sequence(where, fields.get("mlp_only_layers") or [])}
    return everyone - dense


def _index(where: str, item: object) -> int:
    found = int(item) if isinstance(item, str) and item.strip().isdecimal() else item
    return integer(where, found, 0, MAX_TOKENS)


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
