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
    window
        Tokens after which `window_values` stop growing; None if there is no window.
    tensors
        Its tensors.
    kv_values, window_values
        Values cached per token, for all of the context and up to the window.
    state_values
        Values kept per sequence, whatever its length.
    values_per_pair
        Multiplications per new token and token attended to; where an indexer chooses, as if all tokens were chosen.
    """

    form: str
    what: str
    window: int | None
    tensors: tuple[Weight, ...]
    kv_values: int
    window_values: int
    state_values: int
    values_per_pair: int

    @property
    def has_cache(self) -> bool:
        """Whether anything is kept of every token."""
        return self.kv_values + self.window_values > 0


def read_attention(sizes: Formulas, form: str, name: str | None = None) -> Attention:
    """Return attention of a form with the sizes of a layer; `name` is its name in checkpoints."""
    entry = ATTENTION[form]
    if form == "grouped" and sizes["heads"] % sizes["groups"]:
        raise InvalidInput(
            f"{sizes.section.where}num_key_value_heads: expected a divisor of num_attention_heads = {sizes['heads']},"
            f" got {sizes['groups']}"
        )
    return Attention(
        form=form,
        what=entry["what"],
        window=sizes.value(entry["window"]) or None,
        tensors=tuple(sizes.tensors(entry["tensors"], f"{name or entry['name']}.")),
        kv_values=sizes.value(entry["cache"]),
        window_values=sizes.value(entry["window_cache"]),
        state_values=sizes.value(entry["state"]),
        values_per_pair=sizes.value(entry["pair"]),
    )
