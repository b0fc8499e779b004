"""The tables of exact prompt chunking bracket the states of every plan that meets the deadline."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import prompt_chunking_exact as naive

from specopt import PromptChunkingProblem
from specopt.kinds.prompt_chunking.strategies import plans
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings
from specopt.solvers.prompt_chunking.kernels import exact as kernels
from specopt.solvers.prompt_chunking.prepare import prepare


@settings(max_examples=75)
@given(prompt_chunkings(tokens=(2, 12), restricted=False), st.data())
def test_tables_bracket_every_plan(problem: PromptChunkingProblem, data: st.DataObject) -> None:
    """Tests that a plan's states are between earliest and latest for its own end, and that the
    latest are not late.
    """
    chunks = data.draw(plans(problem)).chunks.tolist()
    plain = problem.to_dict()
    prepared = prepare(problem)
    rows, P = prepared.cells + 1, prepared.prompt.stages
    deadline = naive.first_token_seconds(plain, chunks) * (1 + 1e-12)
    tables = kernels.Tables(*np.empty((2, rows, P + 1)), *np.zeros((2, rows), np.int64))
    cut = data.draw(st.integers(0, rows))
    for begin, end in pairwise((0, cut, rows)):
        kernels.earliest(begin, end, prepared.prompt, tables.floor)
    for end, begin in pairwise((rows, cut, 0)):
        if begin < end:
            possible = kernels.latest(begin, end, prepared.prompt, deadline, tables)
    assert possible
    state: naive.State = (0.0,) * (3 + P)
    ends = np.cumsum([0, *chunks]).tolist()
    for k, (before, after) in enumerate(pairwise(ends)):
        resources = np.array(state[1:-1])
        assert (tables.floor[before] <= resources + 1e-12).all()
        assert (resources <= tables.ceiling[before] + 1e-12 * deadline + 1e-15).all()
        assert 0 < tables.shortest[before] <= after
        assert tables.fewest[before] <= len(chunks) - k
        state = naive.after_chunk(plain, state, after - before, after == ends[-1])
    assert (tables.floor[-1] <= np.array(state[1:-1]) + 1e-12).all()
    (before, after), up = prepared.prompt.position[-2:].tolist(), tables.ceiling[-2].tolist()
    if up[0] > -math.inf:  # one chunk alone can follow: from its latest state it ends just in time
        state = naive.after_chunk(plain, (-math.inf, *up, -math.inf), after - before, True)
        assert state[-1] + plain.get("head_seconds", 0.0) == pytest.approx(
            deadline, rel=1e-9, abs=1e-12
        )
