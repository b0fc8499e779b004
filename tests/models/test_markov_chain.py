"""Markov chains: recurrent classes and stationary distributions against exact arithmetic, and what
is refused.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import draft_control as naive

from specopt import InvalidInput, TransitionMatrix
from specopt.kinds.draft_control.strategies import transitions
from specopt.models.markov_chain import recurrent_classes, stationary_distribution

sparse = st.integers(1, 6).flatmap(
    lambda size: st.lists(
        st.lists(st.sampled_from((0, 0, 0, 1)), min_size=size, max_size=size),
        min_size=size,
        max_size=size,
    )
)


@given(sparse)
def test_recurrent_classes_are_the_closed_ones(rows: list[list[int]]) -> None:
    """Tests that the classes are the oracle's, for any number of them; a row of zeros is a class by
    itself.
    """
    assert recurrent_classes(np.array(rows, dtype=np.float64)) == naive.recurrent_classes(rows)


@given(st.integers(1, 5).flatmap(transitions))
def test_stationary_distribution_is_exact(rows: list[list[float]]) -> None:
    """Tests that shares are those of rational elimination, in periodic chains and beside transient
    states too.
    """
    P = np.array(rows)
    (inside,) = recurrent_classes(P)
    expected = naive.stationary(naive.chain({"transition": rows}))
    assert stationary_distribution(P / P.sum(axis=1, keepdims=True), inside) == pytest.approx(
        [float(share) for share in expected], rel=1e-13
    )


def test_a_chain_that_hardly_mixes() -> None:
    """Tests that shares keep their digits where two groups of states meet once in 10^14 steps."""
    a, b, weak = 0.25, 0.5, 1e-14
    rows = [
        [1 - a, a, 0, 0],
        [b - 3 * weak, 1 - b, 3 * weak, 0],
        [0, weak, 1 - b, b - weak],
        [0, 0, a, 1 - a],
    ]
    expected = [float(share) for share in naive.stationary(naive.completed(rows))]
    assert stationary_distribution(np.array(rows), [0, 1, 2, 3]) == pytest.approx(
        expected, rel=1e-13
    )


def test_blocks_of_states_are_states_one_by_one() -> None:
    """Tests that shares of more states than a block solve their equations, whatever their sizes."""
    rng = np.random.default_rng(1)
    matrix = 10.0 ** rng.uniform(-9, 0, (150, 150))
    matrix /= matrix.sum(axis=1, keepdims=True)
    shares = stationary_distribution(matrix, list(range(150)))
    assert shares @ matrix == pytest.approx(shares, rel=1e-13)
    assert shares.sum() == pytest.approx(1.0, rel=1e-13)


def test_long_transient_lines() -> None:
    """Tests that a line of 300 states to one that stays has that one for its class, and a ring has
    all.
    """
    line = np.diag(np.ones(299), 1)
    line[299, 299] = 1.0
    assert recurrent_classes(line) == [[299]]
    line[299] = 0.0
    line[299, 0] = 1.0
    assert recurrent_classes(line) == [list(range(300))]
    assert stationary_distribution(line, list(range(300))) == pytest.approx(np.full(300, 1 / 300))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "transition: expected a list of at least one row, got []"),
        ([1.0], "transition[0]: expected a list of 1 probabilities, got 1.0"),
        ([[0.5, 0.5]], "transition[0]: expected 1 entries, one per row, got 2"),
        ([[1.0, 0.0], [0.0, True]], "transition[1][1]: expected a probability, got True"),
        ([[1.5, -0.5], [0.0, 1.0]], "transition[0][0]: expected a probability, got 1.5"),
        ([[1.0, 0.0], [float("nan"), 1.0]], "transition[1][0]: expected a probability, got nan"),
        (
            [[1.0, 0.0], [0.5, 0.25]],
            "transition[1]: expected probabilities that sum to 1 within 1e-09, got 0.75",
        ),
    ],
)
def test_refusals(data: Any, message: str) -> None:
    """Tests that what is no transition matrix is refused by the place that is wrong."""
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}$"):
        TransitionMatrix.parse(data, "transition")


def test_arrays_are_taken_and_kept() -> None:
    """Tests that arrays are taken as matrices, copied, and read-only; and that rows may be off by
    rounding.
    """
    rows = np.array([[0.5, 0.5 + 5e-10], [0.0, 1.0]])
    matrix = TransitionMatrix.parse(rows, "transition")
    rows[0, 0] = 9.0
    assert matrix.dump() == [[0.5, 0.5 + 5e-10], [0.0, 1.0]]
    assert matrix.scaled.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        matrix.rows[0, 0] = 1.0
    with pytest.raises(
        InvalidInput,
        match=r"rows: expected a square matrix with at least one row, got shape \(1, 2\)",
    ):
        TransitionMatrix(np.ones((1, 2)))


def test_shares_do_not_depend_on_threads() -> None:
    """Tests that the shares of 500 states are equal to the last bit whatever number of threads BLAS
    has.
    """
    program = (
        "import numpy as np; from specopt.models.markov_chain import stationary_distribution as"
        " shares; rows = np.random.default_rng(0).random((500, 500)); print(shares(rows /"
        " rows.sum(axis=1, keepdims=True), list(range(500))).tobytes().hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-P", "-c", program],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(found) == 1
