"""The model types whose `config.json` is understood, and the conventions that the file itself does not state.

A Hugging Face config names its type and its sizes; which matrices have biases, how many norms a layer has and what
an absent field means is fixed by the type. `architectures.toml` beside this file has them. A type that is not listed
there is refused, never guessed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

FULL, SLIDING, LINEAR, DENSE, SPARSE = "full_attention", "sliding_attention", "linear_attention", "dense", "experts"
"""Kinds of layers: what mixes tokens in it, or, in types whose layers do one thing each, which network it is."""


@dataclass(frozen=True)
class Switch:
    """A yes or no that the config states under this name, with what its absence means."""

    name: str
    default: bool


@dataclass(frozen=True, kw_only=True)
class Form:
    """A mixer that is listed in formulas: see `specopt.instances.checkpoints.forms`.

    Parameters
    ----------
    name, what
        See `specopt.instances.checkpoints.attention.Mixer`.
    tensors
        Its tensors.
    cache, window, window_cache, state, pair
        Formulas of `kv_values`, `window`, `window_values`, `state_values` and `values_per_pair`.
    """

    name: str
    what: str
    tensors: tuple[str, ...]
    cache: str
    window: str
    window_cache: str
    state: str
    pair: str


@dataclass(frozen=True, kw_only=True)
class ExpertFields:
    """Where a type's config has its experts.

    Parameters
    ----------
    count, per_token
        Experts of a layer, and those that a token is routed to.
    ffn
        Dimension of an expert.
    shared
        Formula of the dimension of the experts that take every token, together.
    weighted
        Whether the output of those is weighted.
    inner
        Formula of the dimension that experts work in, behind projections; 0: the hidden one.
    inner_norm
        Formula of whether there is a norm before the projection back.
    first_dense, period
        Formula of how many layers are before the first with experts, and every how many there is one; null: every one.
    last_of_period
        Whether the period's last layer has them, not its first.
    offset
        The period's first layer.
    named, listed
        Fields that say so layer by layer, or list the layers with experts; where there is one, it counts.
    on
        Formula of whether there are any.
    bias
        Whether router and experts have biases.
    beside
        Whether a dense network stands beside them in every layer.
    scaled
        Whether they have norms of their own and a scaled router (Gemma 4).
    name, router, shared_name
        What checkpoints call them together, the router, and the shared ones.
    """

    count: str
    per_token: str
    ffn: str
    shared: str
    weighted: bool
    inner: str
    inner_norm: str
    first_dense: str
    period: str | None = None
    last_of_period: bool
    offset: str | None = None
    named: tuple[str, ...]
    listed: tuple[str, ...]
    on: str
    bias: bool
    beside: bool
    scaled: bool
    name: str
    router: str
    shared_name: str


@dataclass(frozen=True, kw_only=True)
class ModelType:
    """What one `model_type` fixes.

    Parameters
    ----------
    architecture
        The classes of the decoder with its output head, as `architectures` names them.
    tied
        Whether input and output embeddings are one matrix when the config does not say.
    gated
        Whether the feed-forward network has a gate matrix.
    ffn
        Name of the field with the feed-forward dimension.
    qkv_bias, output_bias, mlp_bias
        Biases on the query, key and value projections, on the attention's output, in the feed-forward network.
    query_key_norm
        Whether queries and keys are normed per head.
    norms_per_layer
        Norms of the hidden size in a layer.
    layer_norm
        Whether the norms have a bias beside the weight (LayerNorm), not a weight alone (RMSNorm).
    kv_heads
        What an absent number of KV heads means: as many as heads; nothing, it has to be given; or the type has no
        grouped heads at all.
    head_dim
        What an absent head size means: hidden / heads; nothing, it has to be given; or the type knows no other.
    position_offset
        Rows of the table of learned positions beyond `max_position_embeddings`; None for rotary positions.
    defaults
        Sizes that configs of this type leave out when they equal the defaults of its class.
    experts
        Where its config has experts.
    layer_kinds
        What an absent list of kinds means. Every layer attends to everything, to a window, or to a window from layer
        `max_window_layers` on. Another kind is in all layers but every `period`-th, but the first ones and every
        `period`-th of the others, or but those that a field lists (from 0). Or nothing: there has to be a list.
    period
        The field with that period, its default, and the field with the first layer that attends to everything, or with
        the number of first ones; none: it is the period's last.
    other
        The kind of the layers between.
    kind_fields, kind_lists
        Fields that give the kind of each layer, and fields that list the layers (from 1) of a kind.
    kind_names
        What those call the kinds.
    window
        The field of the window.
    forms
        The forms of kinds that have no grouped heads.
    alone
        Whether a layer is a mixer, a dense network, or experts, behind one norm.
    let, optional, flags
        Names in formulas: for other formulas, for sizes that may be absent, and for what is true or false, with what
        its absence means.
    layer, outside
        Further tensors of each layer, and of the decoder.
    model, network, mixer
        What checkpoints call the decoder, a dense network, and what mixes tokens if not by the form's name.
    gated_queries, sinks
        Whether attention's output is gated, whether heads have sinks: see `GroupedAttention`.
    unequal
        Whether layers that attend to everything have KV heads and a head size of their own (Gemma 4). The last ones may
        then take keys and values of earlier ones, and each layer may have a table of embeddings.
    drafts
        The field with the number of layers that predict further tokens.
    draft_fields, draft_kinds
        Fields with the kinds of the layers of such a head, and what their absence means, ``kind/network``; without
        either it is like the last layer that keeps something of every token.
    expert_dtype
        How a quantised config of this type stores experts where it does not say.
    fixed
        Values of fields that the formulas hold for.
    understands
        Of `MARKS` those whose fields mean nothing for the counts, or are in its formulas.
    """

    architecture: tuple[str, ...]
    tied: bool
    gated: bool
    ffn: str
    qkv_bias: bool | Switch
    output_bias: bool | Switch
    mlp_bias: bool | Switch
    query_key_norm: bool | Switch
    norms_per_layer: int
    layer_norm: bool
    kv_heads: Literal["heads", "given", "none"]
    head_dim: Literal["derived", "given", "none"]
    position_offset: int | None = None
    defaults: Mapping[str, int]
    experts: ExpertFields | None = None
    layer_kinds: Literal["full", "window", "window above", "between", "first, then between", "listed", "given"]
    period: tuple[str, int, str]
    other: str
    kind_fields: tuple[str, ...]
    kind_lists: Mapping[str, str]
    kind_names: Mapping[str, str]
    window: str
    forms: Mapping[str, str]
    alone: bool
    let: Mapping[str, str]
    optional: Mapping[str, int]
    flags: Mapping[str, bool]
    layer: tuple[str, ...]
    outside: tuple[str, ...]
    model: str
    network: str
    mixer: str | None = None
    gated_queries: bool
    sinks: bool
    unequal: bool
    drafts: str | None = None
    draft_fields: tuple[str, ...]
    draft_kinds: tuple[str, ...]
    expert_dtype: str | None = None
    fixed: Mapping[str, Any]
    understands: tuple[str, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """Names of `MARKS` that the type understands."""
        has = {
            "experts": self.experts is not None,
            "latent": "latent" in self.forms.values(),
            "hybrid": LINEAR in self.forms,
            "predicting": self.drafts is not None,
            "unequal": self.unequal,
            "both_ways": self.unequal,  # of images alone
        }
        return (*(mark for mark, known in has.items() if known), *self.understands)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Fields (with wildcards) that, set to anything but nothing, mean what only some types have."""

    what: str
    fields: tuple[str, ...]


SWITCHES = ("qkv_bias", "output_bias", "mlp_bias", "query_key_norm")


def _value(name: str, value: Any) -> Any:
    """Return a value of the table as its dataclass takes it: ``field`` or ``field or true`` where there is a switch."""
    if isinstance(value, list):
        return tuple(value)
    if name == "architecture":
        return tuple(value.split())
    if name in SWITCHES and isinstance(value, str):
        return Switch(value.removesuffix(" or true"), value.endswith(" or true"))
    return value


def _read() -> tuple[Mapping[str, Mark], Mapping[str, Form], Mapping[str, ModelType]]:
    """Read the table: an entry begins with what the one that it is ``like`` has."""
    table = tomllib.loads((resources.files(__package__) / "architectures.toml").read_text(encoding="utf-8"))
    for entries in (table["forms"], table["experts"], table["types"]):
        for name, entry in entries.items():
            entries[name] = {**entries.get(entry.pop("like", "base"), {}), **entry}
        del entries["base"]
    marks, forms, experts, types = (
        {name: {key: _value(key, item) for key, item in entry.items()} for name, entry in table[part].items()}
        for part in ("marks", "forms", "experts", "types")
    )
    for entry in types.values():
        if "experts" in entry:
            entry["experts"] = ExpertFields(**experts[entry["experts"]])
    return (
        {name: Mark(**entry) for name, entry in marks.items()},
        {name: Form(**entry) for name, entry in forms.items()},
        {name: ModelType(**entry) for name, entry in types.items()},
    )


MARKS, FORMS, MODEL_TYPES = _read()
"""What only some types have, mixers that are listed in formulas, and the types, by name."""
