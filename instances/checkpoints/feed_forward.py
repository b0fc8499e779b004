"""Feed-forward networks of a layer: dense, and experts to which a router sends each token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specopt.instances.checkpoints.fields import FEED_FORWARD
from specopt.instances.checkpoints.tensors import Formulas, Weight
from specopt.models.errors import InvalidInput


def read_networks(sizes: Formulas, names: Mapping[str, str]) -> Iterator[Weight]:
    """Yield the tensors of a layer's dense network and of its router and experts; `names` are those of checkpoints."""
    if sizes["dense"]:
        yield from sizes.tensors(FEED_FORWARD["dense"], f"{names['network']}.")
    if sizes["sparse"]:
        count, per_token = sizes["experts"], sizes["experts_per_token"]
        if per_token > count:
            where, table = sizes.section.where, sizes.table
            raise InvalidInput(
                f"{where}{table['experts_per_token']}: expected at most {table['experts']} = {count}, got {per_token}"
            )
        yield from sizes.tensors(FEED_FORWARD["experts"], f"{names['experts']}.", **names)
