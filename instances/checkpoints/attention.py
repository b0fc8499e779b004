"""Attention of a layer, or what stands in its place: its tensors, and what it keeps of every token."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.instances.checkpoints.fields import ATTENTION
from specopt.instances.checkpoints.tensors import Formulas, Weight
from specopt.models.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Grouped, latent, windowed or recurrent attention.

    Parameters
    ----------
    form
        Its name in the table of forms.
    what
        What sets it apart from grouped attention.
    tensors
        Its tensors.
    window
        Tokens after which `window_values` stop growing; 0 if there is no window.
    kv_values, window_values
        Values cached per token, for all of the context and up to the window.
    state_values
        Values kept per sequence, whatever its length.
    values_per_pair
        Multiplications per new token and token attended to; where an indexer chooses, as if all tokens were chosen.
    """

    form: str
    what: str
    tensors: tuple[Weight, ...]
    window: int
    kv_values: int
    window_values: int
    state_values: int
    values_per_pair: int


VALUES = ("window", "kv_values", "window_values", "state_values", "values_per_pair")


def read_attention(sizes: Formulas, form: str, name: str | None = None) -> Attention:
    """Return attention of a form with the sizes of a layer; `name` is its name in checkpoints."""
    entry = ATTENTION[form]
    if form == "grouped" and sizes["heads"] % sizes["groups"]:
        where, heads, found = sizes.section.where, sizes["heads"], sizes["groups"]
        raise InvalidInput(
            f"{where}num_key_value_heads: expected a divisor of num_attention_heads = {heads}, got {found}"
        )
    tensors = tuple(sizes.tensors(entry["tensors"], f"{name or entry['name']}."))
    values = {key: sizes.value(entry[key]) for key in VALUES}
    return Attention(form=form, what=entry["what"], tensors=tensors, **values)
