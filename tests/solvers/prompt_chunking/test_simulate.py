"""Many devices on one cloud: the event model, a plain simulation, conservation laws, and the order
of the schemes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import prompt_chunking_simulation as naive_prompt_simulation

from specopt.instances.prompt_chunking.workload import paper_4_workload
from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking.problem import PromptChunkingPlan
from specopt.models.prompt_chunking.workload import PromptWorkload, Rounds, Scheme
from specopt.solvers.kernels.kernel import with_fields
from specopt.solvers.prompt_chunking.simulate import draw, play, problem_of, run_once

WORKLOAD = paper_4_workload(link_latency_seconds=0.005)
U_SHAPE = Scheme(name="U-shape", rounds=Rounds.one_by_one())
PLANNED = Scheme(name="planned", chunking="planned", rounds=Rounds.one_by_one())
SARATHI = Scheme(name="U-Sarathi", chunking="server", rounds=Rounds.one_by_one())
HAT = Scheme(
    name="HAT", chunking="equation-3", rounds=Rounds.threshold(2.06), parallel_drafting=True
)


def split(draw: st.DrawFn, tokens: int) -> list[int]:
    """Some chunks of a prompt."""
    cuts = sorted(draw(st.sets(st.integers(1, tokens - 1), max_size=8))) if tokens > 1 else []
    edges = [0, *cuts, tokens]
    return [after - before for before, after in itertools.pairwise(edges)]


@st.composite
def workloads(draw: st.DrawFn) -> PromptWorkload:
    """Links, stages and overheads of any size."""
    up, down = draw(st.floats(1e6, 2e7)), draw(st.floats(1e6, 2e7))
    small = st.floats(0.0, 0.02, allow_subnormal=False)
    return dataclasses.replace(
        WORKLOAD,
        uplink_bytes_per_second=np.array([up, up]),
        downlink_bytes_per_second=np.array([down, down]),
        bytes_per_token=draw(st.floats(100.0, 20000.0)),
        pipeline_length=draw(st.integers(1, 6)),
        background_tokens=draw(st.sampled_from([0.0, 10.0, 300.5])),
        local_overhead_seconds=draw(small),
        message_overhead_seconds=draw(small),
        link_latency_seconds=draw(small),
        head_seconds=draw(small),
    )


@given(
    st.data(),
    workloads(),
    st.sampled_from(["none", "serial", "overlap"]),
    st.sampled_from(["all", "last"]),
)
def test_a_single_request_is_the_event_model(
    data: st.DataObject, workload: PromptWorkload, wait: str, download: str
) -> None:
    """Tests that one request in an empty system with constant background has exactly the judge's
    TTFT.
    """
    tokens = data.draw(st.integers(1, 400))
    chunks = data.draw(st.composite(lambda draw: split(draw, tokens))())
    one = draw(workload, 1)
    one["arrival"], one["prompt"], one["output"] = 0.0, tokens, 1
    problem = problem_of(workload, one[0], 0.0)
    problem = dataclasses.replace(problem, wait=wait, download=download)  # type: ignore[arg-type]
    expected = problem.evaluate(PromptChunkingPlan(chunks=np.array(chunks))).objective
    run = play(workload, PLANNED, one, plans=[chunks], wait=wait, download=download)  # type: ignore[arg-type]
    assert run.ttft_seconds[0] == pytest.approx(expected, rel=1e-9)
    assert run.reached["chunks"].tolist() == [len(chunks)]


def arrivals(count: int) -> st.SearchStrategy[list[float]]:
    """Different times, for ties are up to rounding."""
    return st.lists(
        st.floats(0.0, 0.5, allow_subnormal=False), min_size=count, max_size=count, unique=True
    )


@given(st.data(), workloads(), st.integers(1, 6), st.booleans(), st.integers(1, 4))
def test_kernel_is_the_plain_simulation(
    data: st.DataObject, workload: PromptWorkload, count: int, server: bool, gained: int
) -> None:
    """Tests that several requests with chunks, rounds and drafts go as in a simulation that shares
    no code.
    """
    workload = dataclasses.replace(workload, background_tokens=0.0, output_tokens=9)
    requests = draw(workload, count, seed=data.draw(st.integers(0, 1000)))
    requests["prompt"] = data.draw(st.lists(st.integers(1, 300), min_size=count, max_size=count))
    requests["arrival"] = np.sort(data.draw(arrivals(count)))
    plans = [
        data.draw(st.composite(lambda draw, n=n: split(draw, n))())
        for n in requests["prompt"].tolist()
    ]
    if server:
        plans = [[n] for n in requests["prompt"].tolist()]
    rounds = Rounds(
        drafted=np.array([gained - 1]),
        sent=np.array([gained + 1]),
        gained=np.array([gained]),
        probabilities=np.ones(1),
    )
    scheme = Scheme(
        name="", chunking="server" if server else "planned", rounds=rounds, server_chunk_tokens=64
    )
    run = play(workload, scheme, requests, plans=plans)
    margins: list[float] = []
    expected = naive_prompt_simulation.simulate(
        list(
            zip(
                workload.cloud_delay.tokens.tolist(),
                workload.cloud_delay.seconds.tolist(),
                strict=True,
            )
        ),
        [
            {"arrival": a, "prompt": n, "output": 9, "up": u, "down": d, "draft": g, "chunks": c}
            for (a, n, _, u, d, g, _), c in zip(requests.tolist(), plans, strict=True)
        ],
        stages=workload.pipeline_length,
        size=workload.bytes_per_token,
        local=workload.local_overhead_seconds,
        local_token=workload.local_seconds_per_token,
        message=workload.message_overhead_seconds,
        latency=workload.link_latency_seconds,
        head=workload.head_seconds,
        sent=gained + 1,
        gained=gained,
        drafted=gained - 1,
        budget=64 if server else None,
        margins=margins,
    )
    assume(min(margins, default=1.0) > 1e-9)  # nothing comes within rounding of a batch's start
    last = run.ttft_seconds + 8 * run.tbt_seconds
    assert run.ttft_seconds == pytest.approx([first for first, _ in expected], rel=1e-9)
    assert last == pytest.approx([last for _, last in expected], rel=1e-9)


def test_parallel_drafting_hides_what_equation_6_says() -> None:
    """Tests that with sure hits every draft but the first is hidden, up to the steps of Eq. 6."""
    workload = dataclasses.replace(WORKLOAD, output_tokens=31, draft_seconds=np.array([0.008]))
    four = Rounds(
        drafted=np.array([6]),
        sent=np.array([6]),
        gained=np.array([3]),
        probabilities=np.ones(1),
        hit=np.ones(1),
    )
    one = draw(workload, 1)
    alone = play(workload, Scheme(name="", rounds=four), one)
    both = play(workload, Scheme(name="", rounds=four, parallel_drafting=True), one)
    link = 6 * 8192 * (1 / one["uplink"][0] + 1 / one["downlink"][0])
    steps = min(6, math.floor((link + 0.026141581) / 0.008))  # g(mu) >= g(0)
    assert both.reached["rounds"].tolist() == [10]
    assert 9 * steps <= both.reached["hidden"][0] <= 9 * 6
    saved = 30 * (alone.tbt_seconds[0] - both.tbt_seconds[0])
    assert saved == pytest.approx(both.reached["hidden"][0] * 0.008, rel=1e-9)
    fixed = play(
        workload, Scheme(name="", rounds=four, parallel_drafting=True, parallel_steps=2), one
    )
    assert fixed.reached["hidden"].tolist() == [18]


def test_inputs_may_be_read_only() -> None:
    """Tests that read-only requests give the same run."""
    drawn = draw(WORKLOAD, 20)
    expected = play(WORKLOAD, HAT, drawn)
    drawn.flags.writeable = False
    assert play(WORKLOAD, HAT, drawn).ttft_seconds.tolist() == expected.ttft_seconds.tolist()
    sizes = drawn["prompt"].tolist()
    whole = play(WORKLOAD, PLANNED, drawn, plans=[[n] for n in sizes])
    assert play(WORKLOAD, U_SHAPE, drawn).ttft_seconds.tolist() == whole.ttft_seconds.tolist()


def test_schemes_meet_the_same_requests() -> None:
    """Tests that a seed fixes the prompts, whatever the scheme."""
    one, other = (run_once(WORKLOAD, scheme, requests=50, seed=3) for scheme in (HAT, U_SHAPE))
    assert one.prompt_tokens.tolist() == other.prompt_tokens.tolist()


def test_every_scheme_conserves_tokens() -> None:
    """Tests that rounds yield at least the tokens asked for and not a round more, and chunks cover
    the prompt.
    """
    for scheme in (U_SHAPE, SARATHI, HAT):
        run = run_once(WORKLOAD, scheme, requests=100, warm_up_requests=20, log_batches=20)
        assert np.isfinite(run.ttft_seconds).all()
        assert np.isfinite(run.tbt_seconds).all()
        most = int(scheme.rounds.gained.max())
        assert (run.reached["rounds"] * most >= 127).all()
        assert (run.reached["rounds"] <= 127).all()
        tokens = run.log["prompt_tokens"] + run.log["round_tokens"]
        assert run.log["seconds"] == pytest.approx([WORKLOAD.cloud_delay.at(m) / 4 for m in tokens])
        assert (np.diff(run.log["start"]) >= run.log["seconds"][:-1] - 1e-12).all()
    ones = run_once(WORKLOAD, U_SHAPE, requests=100)
    assert ones.reached["rounds"].tolist() == [127] * 100
    assert ones.reached["chunks"].tolist() == [1] * 100


def test_chunks_of_equation_3_overlap_and_drafts_save_rounds() -> None:
    """Tests that at low load HAT has the lowest TTFT and TBT, and fewer rounds."""
    runs = {s.name: run_once(WORKLOAD, s, requests=300) for s in (U_SHAPE, SARATHI, HAT)}
    assert runs["HAT"].mean_ttft_seconds < 0.75 * runs["U-Sarathi"].mean_ttft_seconds
    assert runs["U-Sarathi"].mean_ttft_seconds < runs["U-shape"].mean_ttft_seconds
    assert runs["HAT"].mean_tbt_seconds < 0.8 * runs["U-shape"].mean_tbt_seconds
    assert runs["HAT"].reached["rounds"].mean() == pytest.approx(127 / 2.06, rel=0.05)


def test_overload_ends() -> None:
    """Tests that a cloud far too slow still serves everybody, later and later."""
    busy = dataclasses.replace(WORKLOAD, requests_per_second=200.0, pipeline_length=1)
    run = run_once(busy, U_SHAPE, requests=200, warm_up_requests=0)
    assert run.busy_share > 0.95
    assert run.mean_ttft_seconds > 5.0 * run_once(WORKLOAD, U_SHAPE, requests=200).mean_ttft_seconds


def test_planned_chunks_are_few_where_messages_cost() -> None:
    """Tests that at 3 ms per message the default planner has fewer chunks and an earlier first
    token than Eq. 3.
    """
    workload = dataclasses.replace(
        WORKLOAD, message_overhead_seconds=0.003, requests_per_second=2.0
    )
    ours = Scheme(name="ours", chunking="planned", rounds=HAT.rounds, parallel_drafting=True)
    runs = [run_once(workload, scheme, requests=60, warm_up_requests=10) for scheme in (HAT, ours)]
    assert runs[1].mean_ttft_seconds < 0.95 * runs[0].mean_ttft_seconds
    assert runs[1].reached["chunks"].mean() < 0.5 * runs[0].reached["chunks"].mean()


@pytest.mark.parametrize("scheme", [HAT, SARATHI], ids=lambda scheme: scheme.name)
def test_kernel_is_plain_python(scheme: Scheme, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the compiled simulation is the same code run by Python, random rounds and Eq. 3
    included.
    """
    import specopt.solvers.prompt_chunking.kernels.simulation as kernels

    requests = draw(dataclasses.replace(WORKLOAD, output_tokens=12), 15, seed=5)
    compiled = play(WORKLOAD, scheme, requests)
    python = kernels.play.py_func
    monkeypatch.setattr(kernels, "play", lambda *arguments: python(*map(with_fields, arguments)))
    with np.errstate(over="ignore"):  # the random numbers wrap around
        plain = play(WORKLOAD, scheme, requests)
    assert plain.ttft_seconds.tolist() == compiled.ttft_seconds.tolist()
    assert plain.tbt_seconds.tolist() == compiled.tbt_seconds.tolist()
    assert plain.reached["hidden"].tolist() == compiled.reached["hidden"].tolist()
    assert (plain.events, plain.batches, plain.stage_seconds) == (
        compiled.events,
        compiled.batches,
        compiled.stage_seconds,
    )


def test_bad_arguments_are_refused() -> None:
    """Tests that each refusal names the argument."""
    one = draw(WORKLOAD, 1)
    for changes, match in (
        ({"requests": 0}, "requests"),
        ({"seed": -1}, "seed"),
        ({"warm_up_requests": True}, "warm_up_requests"),
        ({"wait": "maybe"}, "wait"),
        ({"download": "some"}, "download"),
    ):
        with pytest.raises(InvalidInput, match=match):
            run_once(WORKLOAD, U_SHAPE, **changes)
    for plans in (None, [[1]], [[0, int(one["prompt"][0])]]):
        with pytest.raises(InvalidInput, match="plans"):
            play(WORKLOAD, PLANNED, one, plans=plans)
