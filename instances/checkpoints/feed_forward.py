"""Feed-forward networks of a layer: dense, and experts to which a router sends each token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specopt.instances.checkpoints.fields import FEED_FORWARD
from specopt.instances.checkpoints.tensors import Formulas, Weight
from specopt.models.errors import InvalidInput


def dense_network(sizes: Formulas, names: Mapping[str, str]) -> Iterator[Weight]:
    """Return the tensors of a dense network."""
    return sizes.tensors(FEED_FORWARD["dense"], f"{names['network']}.")


def expert_network(sizes: Formulas, names: Mapping[str, str]) -> Iterator[Weight]:
    """Return the tensors of router, routed experts and shared experts."""
    count, per_token = sizes["experts"], sizes["experts_per_token"]
    if per_token > count:
        fields = [sizes.table[name] for name in ("experts_per_token", "experts")]
        raise InvalidInput(
            f"{sizes.section.where}{fields[0]}: expected at most {fields[1]} = {count}, got {per_token}"
        )
    return sizes.tensors(FEED_FORWARD["experts"], f"{names['experts']}.", **names)
