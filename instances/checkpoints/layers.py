"""The layers of a decoder from its config."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from specopt.instances.checkpoints.attention import Attention, read_attention
from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.feed_forward import read_networks
from specopt.instances.checkpoints.tensors import Formulas, Weight
from specopt.models.arguments import one_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

T = TypeVar("T")

FULL = "full_attention"

MAX_DRAFT_LAYERS = 8
"""Largest number of layers of draft heads that a list of layers may have behind those of the decoder."""

HAS_EXPERTS = {"sparse": True, "moe": True, "hash_moe": True, "1": True, "dense": False, "0": False}


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """One layer.

    Parameters
    ----------
    sizes
        The formulas of its type, evaluated for it.
    attention
        What mixes tokens.
    weights
        All its tensors.
    """

    sizes: Formulas
    attention: Attention
    weights: tuple[Weight, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it has grouped attention and a dense network, and nothing more."""
        sizes = self.sizes
        return bool(self.attention.form == "grouped" and sizes["plain"] and sizes["dense"] and not sizes["sparse"])


def read_layers(config: Config) -> list[Layer]:
    """Return the layers that a config describes.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory or unknown.
    """
    kinds, formulas = layer_kinds(config), config.formulas
    lists = [name for name in config.type.expert_fields if isinstance(config.get(name), list)]
    experts = listed_words(config, lists[0], HAS_EXPERTS) if lists and "experts" in config.type.understands else None
    layers, read = list[Layer](), dict[tuple[Any, ...], Layer]()
    for index, kind in enumerate(kinds):
        sizes = formulas.having({}, layers=len(kinds), index=index, kind=kind)
        if experts is not None:
            sizes = sizes.having({}, sparse=experts[index])
        unlike = kind, sizes["sparse"], sizes["borrows"]
        if unlike not in read:
            read[unlike] = read_layer(config, sizes)
        layers.append(read[unlike])
    return layers


def read_layer(config: Config, sizes: Formulas) -> Layer:
    """Return a layer whose index and kind are among its formulas."""
    kind = config.type
    attention = read_attention(sizes, kind.attention.get(sizes["kind"], "none"), kind.names.get("mixer"))
    weights = (*attention.tensors, *read_networks(sizes, kind.names), *sizes.tensors(kind.layer))
    return Layer(sizes=sizes, attention=attention, weights=weights)


def layer_kinds(config: Config) -> list[str]:
    """Return the kind of each layer."""
    found = list[str]()
    for name in config.type.kind_fields:
        given = listed_words(config, name, config.type.kind_names)
        if given is not None:  # the first word that is not about full attention counts
            found = [before if before != FULL else now for before, now in zip(found or given, given, strict=True)]
    layers = config.size("num_hidden_layers", len(found) or None)
    if found:
        return found
    formulas = config.formulas
    kinds = [formulas.having({}, index=index, layers=layers)["kind"] for index in range(layers)]
    if "" in kinds:
        raise InvalidInput(
            f"{config.where}num_hidden_layers: expected each of {layers} layers in a list of its kind, got none for"
            f" layer {kinds.index('') + 1}"
        )
    return kinds


def listed_words(config: Config, name: str, meanings: Mapping[str, T], *, of_head: bool = False) -> list[T] | None:
    """Return what a field says of each layer, without those of draft heads behind them unless it is about these."""
    given = config.get(name)
    if given is None or given == []:
        return None
    where = config.path(name)
    if not isinstance(given, list | str):
        raise InvalidInput(f"{where}: expected a list, got {describe(given)}")
    if config.given("num_hidden_layers") and not of_head:
        layers = config.size("num_hidden_layers")
        spare = MAX_DRAFT_LAYERS if "predicting" in config.type.understands else 0
        if not layers <= len(given) <= layers + spare:
            raise InvalidInput(f"{where}: expected {layers} entries, got {len(given)}")
        given = given[:layers]
    known = tuple(meanings)
    return [meanings[one_of(f"{where}[{index}]", str(item), known)] for index, item in enumerate(given)]


def under(prefix: str, weights: Iterable[Weight]) -> Iterator[Weight]:
    """Yield the weights of a part of the model under the part's name."""
    for weight in weights:
        yield replace(weight, name=f"{prefix}.{weight.name}")
