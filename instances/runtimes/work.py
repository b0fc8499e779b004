"""The work done in measured passes, against which runtimes are fitted.

Work is the number of tokens, the number of operations, or the features of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specopt.instances.runtimes.table import RuntimeTable
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.pass_time.fitted import Additive, Operations, Tokens

XUnit = Literal["tokens", "flops"]
Slope = Literal["seconds_per_token", "seconds_per_flop"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """The work done in measured passes, which is the input of a fit.

    Parameters
    ----------
    total
        Number of tokens or operations in the whole pass, shape (n, 1); None if the table contains
        only features.
    features
        Features N_linear, N_interactions and N_cached of Eq. 18 (paper 2), shape (n, 3); None if
        tokens are unknown.
    slope
        Name of the coefficient per unit of `total`.
    """

    total: Floats | None
    features: Floats | None
    slope: Slope


def work_of(
    table: RuntimeTable,
    x_unit: XUnit | None = None,
    *,
    decoder: Decoder | None = None,
    all_logits: bool = False,
) -> Work:
    """Return the work of each pass.

    A single column of tokens contains the number of new tokens per request. A pass over m new
    tokens with c cached tokens has the total length c + m. With a decoder, the number of operations
    per request is flops_per_token m + flops_per_token_pair m (c + m) + flops_per_logit logits. The
    number of logits is 1 if only the last position needs logits, and m if all positions need them.
    Three columns of tokens contain the features of a batch.

    Parameters
    ----------
    table
        Measured passes.
    x_unit
        Unit of the single column. None means tokens, and a column whose name indicates another
        unit is rejected.
    decoder
        Decoder that converts tokens into operations; operations in the table are not converted.
    all_logits
        Whether logits are needed at every new position, as in verification.

    Raises
    ------
    InvalidInput
        If the columns and the unit contradict each other.
    """
    columns = table.columns
    if len(columns.x) == 3:
        if x_unit == "flops" or decoder is not None or columns.cached or columns.batch:
            raise InvalidInput(
                "x: three columns are read as batch features: the sums over the batch of new"
                " tokens, of (cached + new) * new, and of cached tokens. They cannot be combined"
                " with a model, with columns of cached tokens or batch, or with FLOPs"
            )
        return Work(total=None, features=table.x, slope="seconds_per_token")
    if len(columns.x) != 1:
        raise InvalidInput(
            f"x: expected one column, or three for the additive form, got {len(columns.x)}"
        )
    if x_unit is None and "flop" in columns.x[0].lower():
        raise InvalidInput(
            f"x: the column {columns.x[0]!r} does not seem to be in tokens; give the unit with"
            " --x-unit"
        )
    x = table.x[:, 0]
    batch = table.batch
    cached = table.cached
    if x_unit == "flops":
        if columns.cached is not None:
            raise InvalidInput(
                "cached: omit this column when x is in FLOPs, which already include attention"
            )
        return Work(total=(x * batch)[:, None], features=None, slope="seconds_per_flop")
    counted = Tokens() if decoder is None else Operations(decoder, all_logits, attends=True)
    return Work(
        total=counted.upper_features(batch, x, cached)[:, :1],
        features=Additive().features(batch, x, cached)[:, :3],
        slope="seconds_per_token" if decoder is None else "seconds_per_flop",
    )
