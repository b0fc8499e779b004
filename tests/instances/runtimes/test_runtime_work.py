"""What passes are fitted against: tokens, operations of a decoder, features of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specopt import ExactDecoder, InvalidInput
from specopt.instances.runtimes.table import RuntimeTable, TableColumns, read_runtime_table
from specopt.instances.runtimes.work import work_of
from specopt.models.pass_time import pass_time

DECODER = ExactDecoder(
    layers=2,
    hidden=32,
    ffn=64,
    heads=4,
    kv_heads=2,
    head_dim=8,
    gated=True,
    vocabulary=50,
    tied=False,
)


def table(path: Path, **columns: Any) -> RuntimeTable:
    """Read a table of two passes."""
    file = path / "table.csv"
    file.write_text("new,cached,batch,flops,seconds\n5,0,2,100,1\n1,9,3,7,2\n")
    return read_runtime_table(file, TableColumns(**({"x": ("new",), "y": ("seconds",)} | columns)))


def test_tokens(tmp_path: Path) -> None:
    """Tests that tokens of a batch are counted together, with their features by hand."""
    work = work_of(table(tmp_path, cached="cached", batch="batch"), "tokens")
    assert work.total is not None
    assert work.features is not None
    assert work.total[:, 0].tolist() == [10.0, 3.0]
    assert work.features.tolist() == [[10.0, 50.0, 0.0], [3.0, 30.0, 27.0]]
    assert work.slope == "seconds_per_token"


@pytest.mark.parametrize("all_logits", [False, True])
def test_operations_are_those_of_a_pass(tmp_path: Path, all_logits: bool) -> None:
    """Tests that operations are what `specopt export vllm` counts for the same pass."""
    work = work_of(
        table(tmp_path, cached="cached", batch="batch"), decoder=DECODER, all_logits=all_logits
    )
    assert work.total is not None
    for row, (new, cached, batch) in enumerate([(5, 0, 2), (1, 9, 3)]):
        runtime = {"seconds_per_flop": 1.0, "overhead_seconds": 0.0}
        time = pass_time(runtime, "r", decoder=DECODER, all_logits=all_logits)
        assert work.total[row, 0] == time.seconds(np.array(batch), np.array(new), np.array(cached))
    assert work.slope == "seconds_per_flop"
    pairs = 4 * 2 * 4 * 8 * 5 * 5
    by_hand = (
        2 * 2 * (32 * 8 * 12 + 3 * 32 * 64) * 5 + pairs + 2 * 32 * 50 * (5 if all_logits else 1)
    )
    assert work.total[0, 0] == 2 * by_hand


def test_operations_of_the_table(tmp_path: Path) -> None:
    """Tests that operations that the table gives are taken as they are, times the batch."""
    for decoder in (None, DECODER):
        work = work_of(table(tmp_path, x=("flops",), batch="batch"), "flops", decoder=decoder)
        assert work.total is not None
        assert work.total[:, 0].tolist() == [200.0, 21.0]
        assert (work.features, work.slope) == (None, "seconds_per_flop")


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"x": ("flops",)}, {}, "'flops' does not seem to be in tokens; give the unit with"),
        ({"x": ("new", "cached")}, {}, "x: expected one column, or three"),
        (
            {"x": ("new", "cached", "flops")},
            {"x_unit": "flops"},
            "x: three columns are read as batch features",
        ),
        (
            {"x": ("new", "cached", "flops")},
            {"decoder": DECODER},
            "x: three columns are read as batch features",
        ),
        (
            {"x": ("new", "cached", "flops"), "batch": "batch"},
            {},
            "x: three columns are read as batch features",
        ),
        (
            {"x": ("flops",), "cached": "cached"},
            {"x_unit": "flops"},
            "cached: omit this column",
        ),
    ],
)
def test_what_does_not_go_together(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    """Tests that columns and units that contradict each other are refused."""
    with pytest.raises(InvalidInput, match=message):
        work_of(table(tmp_path, **columns), **options)
