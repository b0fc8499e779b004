"""Coarse blocks against all blocks: what a path over fewer cells may cost; and all paths, counted
by hand.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate
from hypothesis import assume, given
from hypothesis import strategies as st

from specopt import ServingLatencyProblem
from specopt.kinds.serving_latency.strategies import linear_runtimes, problems
from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.blocks import Tables, coarsened, scenario_tables, widths
from specopt.solvers.serving_latency.kernels import bounds
from specopt.solvers.serving_latency.positions import Enumeration, PathBound, Positions
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_latency.stages import stages

LINEAR = problems(
    tasks=(3, 14),
    max_input=200,
    max_output=20,
    mechanisms=["pipelined"],
    output_lengths=["conservative"],
    runtime=linear_runtimes(),
)


def tables_of(problem: ServingLatencyProblem) -> Tables:
    """Return the tables of all blocks at l = 1."""
    prepared = prepare(problem)
    return scenario_tables(stages(prepared, 1), widths(prepared), bounds)


def least_cost(tables: Tables, weights: Floats, front: int, pool: int, more: bool) -> float:
    """Return the Lagrangian bound at weights: the least cost of a path."""
    specials = weights.shape[1]
    table = np.zeros((specials + 1, *tables.d.shape[1:]))
    value = np.zeros(((pool + 1) << specials, tables.cells + 1))
    path, blocks = (
        np.zeros((3, tables.cells + specials + pool), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    costs, places = bounds.Costs(*tables.arrays), bounds.Places(front, pool, more)
    bounds.compose(costs, front, weights, table, value)
    bounds.shortest_paths(
        costs, tables.last, tables.least, places, table, value, np.arange(len(value))[::-1].copy()
    )
    gradient = np.zeros_like(weights)
    return float(
        bounds.lagrangian(costs, tables.least, places, table, value, path, blocks, gradient)
    )


@given(
    LINEAR,
    st.integers(2, 13),
    st.integers(1, 4),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_coarse_paths_cost_no_more(
    problem: ServingLatencyProblem, cells: int, specials: int, pool: int, more: bool, seed: int
) -> None:
    """Tests that the least cost over fewer cells is at most that over all blocks, at any
    weights.
    """
    assume(cells < problem.tasks)
    fine = tables_of(problem)
    coarse: Any = coarsened(fine, cells)
    assume(coarse is not None)
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(specials, 0.3), size=len(fine.d))
    front = int(random.integers(1, specials + 1))
    least = least_cost(fine, weights, front, pool, more)
    assert least_cost(coarse, weights, front, pool, more) <= least * (1 + 1e-12)


@pytest.mark.parametrize(("cells", "loss"), [(100, 0.002), (500, 0.001)])
def test_coarse_paths_cost_hardly_less(cells: int, loss: float) -> None:
    """Tests that the bound of a thousand tasks loses little where it runs over fewer cells."""
    problem = generate("serving-latency/paper-1", pair="1.1B-7B", tasks=1000, seed=1)
    fine = tables_of(dataclasses.replace(problem, draft_memory_bytes=64e9))
    coarse: Any = coarsened(fine, cells)
    weights = np.full((len(fine.d), 2), 0.5)
    least = least_cost(fine, weights, 1, 0, True)
    assert least * (1 - loss) <= least_cost(coarse, weights, 1, 0, True) <= least


@pytest.mark.parametrize("nodes", [4, 1000])
def test_every_path_is_found_once(nodes: int) -> None:
    """Tests that four tasks in three blocks at three places have 3 x 6 paths, found at once or with
    pauses.
    """
    problem = generate("serving-latency/paper-1", tasks=4, seed=1)
    tables = tables_of(problem)
    places = Positions(front=1, specials=2, pool=1, more=False)
    search = Enumeration(
        PathBound(tables, places, Budget(problem)), np.full((len(tables.d), 2), 0.5)
    )
    found = []
    while not search.done:
        found += search.advance(nodes, np.inf)
    assert len(found) == len({(*ends, *positions) for ends, _, positions in found}) == 3 * 6
    assert search.nodes == 2 * 3 + 3 * 6 + 3 * 6  # beginnings of one, two and three blocks
