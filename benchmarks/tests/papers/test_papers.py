"""Experiments of the five papers: what they find at their defaults, in small versions, against what
is known.

`experiments.json` holds what each found before. An intended change is recorded with
``PYTHONPATH=benchmarks .venv/bin/python -P benchmarks/tests/papers/test_papers.py``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from papers import paper_1, paper_2, paper_3, paper_4, paper_5
from papers.audit import follows
from papers.experiment import Found
from papers.ledger import TITLES, paper, record

from specopt.models.draft_control.problem import DraftChoice, DraftControlPlan

pytestmark = pytest.mark.nightly

RECORD = Path(__file__).parent / "experiments.json"
CHEAP = [
    (name, experiment)
    for name in TITLES
    for experiment in paper(name).experiments
    if (name, experiment) not in (("paper-1", "figure-7"), ("paper-1", "figure-8"))
    and not experiment.startswith("table-2")
    and (name != "paper-3" or experiment == "figure-3-texts")
]


@cache
def default(name: str, experiment: str, **changes: object) -> Found:
    """What an experiment finds at its defaults, one seed."""
    point = {one.name: one.default for one in paper(name).box(experiment)} | changes
    found: Found = paper(name).module.EXPERIMENTS[experiment](point, (0,))
    return found


@pytest.mark.parametrize(("name", "experiment"), CHEAP)
def test_experiments_answer_their_statements(name: str, experiment: str) -> None:
    """Tests that an experiment yields a finite number for exactly the statements that name it, and
    whole curves.
    """
    found, asked = default(name, experiment), {said.id for said in paper(name).of(experiment)}
    assert asked <= set(found.values) and (
        asked == set(found.values) or experiment.endswith("-real")
    )
    assert np.isfinite(list(found.values.values())).all()
    assert found.values == pytest.approx(
        json.loads(RECORD.read_text())[f"{name}, {experiment}"], rel=1e-6, abs=1e-9
    )
    for curves in found.curves.values():
        assert all(len(line) == len(curves.at) for line in curves.lines.values())


@pytest.mark.parametrize("name", TITLES)
def test_audits_are_those_of_the_record(name: str) -> None:
    """Tests that what follows from printed numbers alone is what the record holds, to its
    digits.
    """
    if "printed" in paper(name).experiments:
        recorded = record()["papers"][name]
        for item, ours in default(name, "printed").values.items():
            assert recorded[item]["ours"] == float(f"{ours:.6g}"), item


def test_the_record_covers_the_ledger() -> None:
    """Tests that the record has every computed statement, no others, and shares where there are
    assumptions.
    """
    for name in TITLES:
        computed = {said.id: said for said in paper(name).statements.values() if said.by}
        recorded = record()["papers"][name]
        assert set(recorded) == set(computed)
        for item, said in computed.items():
            mapped = {"held", "samples", "median"}
            assert mapped & set(recorded[item]) == (
                mapped if paper(name).experiments[said.by] else set()
            ), item
            assert ("near" in recorded[item]) == said.one_sided, item


def test_paper_1_autoregressive_serving() -> None:
    """Tests that it wins on the 1.1B pairs if "two batches" is read literally, and on none with
    batches of two.
    """
    literal = default("paper-1", "figure-6").values
    assert literal["figure-6b.order"] < 0.0 and literal["figure-6c.order"] < 0.0
    assert (
        default("paper-1", "figure-6", heuristic_start="two tasks a batch").values[
            "abstract.autoregressive"
        ]
        > 0.0
    )


def test_paper_1_reductions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that reductions are against the schemes, and at the places, for which the paper prints
    them.
    """
    seconds = {
        "proposed": 2.0,
        "static batching": 5.0,
        "max batching": 4.0,
        "heuristic batching": 2.5,
    }
    monkeypatch.setattr(paper_1, "_scheme", lambda name, *_: seconds.get(name, 8.0))
    found = paper_1.figure_8({"verify_memory_gb": 999.0}, (0,))
    assert [found.values[f"figure-8{letter}.reduction"] for letter in "abc"] == pytest.approx(
        [0.5, 0.2, 0.2]
    )
    marks = np.array([found.curves[f"figure-8{letter}"].printed["proposed"][0] for letter in "abc"])
    shares = 1.0 - np.array([0.214, 0.196, 0.205])
    assert marks == pytest.approx(np.transpose([[90, 1792, 1024], shares * [4.0, 2.5, 2.5]]))


def test_paper_2_controller() -> None:
    """Tests that with ample memory WISP carries no more than centralised serving while the drafting
    controller is on, and that memory costs centralised serving more, class of 2 tokens/s.
    """
    from papers.paper_2 import _SYSTEMS, _workload

    from specopt.solvers.verification_batch.simulate import capacity

    box = {one.name: one.default for one in paper("paper-2").box("table-2")}

    def carried(name: str, **changes: object) -> float:
        policy, system = _SYSTEMS[name]
        workload = _workload(box | changes, (2.0,), **system)
        run = capacity(
            workload,
            policy,
            seeds=(0,),
            seconds=30.0,
            resolution=0.05,
            centralised=name == "centralised",
        )
        return run.mean

    ample = {"cache_gb": 1000.0}
    centralised, wisp = carried("centralised", **ample), carried("WISP", **ample)
    assert wisp < 1.1 * centralised < 1.5 * centralised
    assert 1.5 * centralised < carried("WISP", controller="off", **ample)
    assert carried("WISP") / carried("centralised") > wisp / centralised


def test_paper_2_knees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a knee is the last load without late responses, and that the least shift where
    FCFS has one counts.
    """
    last = {"WISP": (300, 250, 200, 150), "FCFS": (200, 200, 100, 650)}

    def rates(point: Any, fcfs: str, counts: Any, seeds: Any) -> Any:
        return {name: np.greater.outer(counts, knees).astype(float) for name, knees in last.items()}

    monkeypatch.setattr(paper_2, "_rates", rates)
    found = paper_2.figure_7({"fcfs": "SLED", "gain": "devices at the knee"}, (0,)).values
    assert (found["figure-7.low"], found["figure-7.rise"], found["figure-7.order"]) == (
        0.0,
        1.0,
        1.0,
    )
    assert found["figure-7.knee"] == 250 - 200
    assert found["figure-7.fast"] == 200 / 100 - 300 / 200
    # late under FCFS at 9, 9, 11 and 0 of the 13 loads, under WISP at 7, 8, 9 and 10
    found = paper_2.figure_7({"fcfs": "SLED", "gain": "share of violations avoided"}, (0,)).values
    assert found["figure-7.fast"] == pytest.approx(2 / 11 - 2 / 9)


def test_paper_3_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the least loss of S-Q counts, and by how much that at the highest temperature
    exceeds all others.
    """
    lost = {0.2: 0.3, 0.4: 0.1, 0.6: 0.5}

    def laws(temperature: float, point: Any, seeds: Any) -> Any:
        errors = np.where(np.array(paper_3.RESOLUTIONS) == 100, lost[temperature], 0.9)
        return SimpleNamespace(
            lost_error=errors,
            kept_error=0 * errors,
            entropies=dict.fromkeys(("LLM", "SLM", "Q-S", "S-Q"), errors),
        )

    monkeypatch.setattr(paper_3, "_laws", laws)
    point = {"resolution": 100, "lowest_temperature": 0.2, "highest_temperature": 0.6}
    found = paper_3.figure_3(point, (0,)).values
    assert found == pytest.approx({"figure-3a.lost": 0.1, "figure-3a.trend": 0.5 - 0.3})


def test_paper_3_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a pass of 100 ms yields 10 tokens per second alone, and that gains are over
    these.
    """
    rates = np.full((len(paper_3.RESOLUTIONS), paper_3.CLASSES), 0.8)
    laws = SimpleNamespace(rates=rates, lossy_rates=rates, zero_rates=rates)
    monkeypatch.setattr(paper_3, "_laws", lambda temperature, point, seeds: laws)
    monkeypatch.setattr(
        paper_3, "simulate", lambda problem, policy, **options: SimpleNamespace(mean=12.0)
    )
    monkeypatch.setattr(paper_3, "solve", lambda problem, method: SimpleNamespace(objective=20.0))
    point = {one.name: one.default for one in paper("paper-3").box("figure-4")} | {
        "verify_ms": 100.0
    }
    found = paper_3.figure_4(point, (0,))
    assert found.curves["figure-4a"].lines["LLM"] == pytest.approx([10.0] * len(paper_3.AXIS))
    assert found.values["abstract.gain"] == pytest.approx(20.0 / 10.0 - 1.0)


def test_paper_3_static_settings() -> None:
    """Tests that the closed form of a static setting is the judge's value of the plan."""
    point = {one.name: one.default for one in paper("paper-3").box("figure-4")}
    rates = np.random.default_rng(0).uniform(0.3, 0.95, (len(paper_3.RESOLUTIONS), paper_3.CLASSES))
    for regime in paper_3.UPLINKS:
        problem, speeds = (
            paper_3.problem_of(rates, regime, point),
            paper_3.static_rates(rates, regime, point),
        )
        for row, column in ((0, 0), (2, 4), (4, 31)):
            choice = DraftChoice(draft_length=column + 1, resolution=paper_3.RESOLUTIONS[row])
            plan = DraftControlPlan(policy=(choice,) * len(problem.states))
            assert problem.evaluate(plan).objective == pytest.approx(speeds[row, column], rel=1e-12)


def test_paper_3_laws() -> None:
    """Tests that on a small vocabulary Q-S keeps the law, S-Q does not, and rejecting impossible
    drafts costs rate.
    """
    laws = paper_3.laws_at(0.8, 0.8, (0,), 2000)
    assert laws.kept_error.max() < 1e-12 < 1e-3 < laws.lost_error[0]
    assert (laws.zero_rates <= laws.lossy_rates + 1e-12).all() and (
        laws.zero_rates[0] < laws.lossy_rates[0]
    ).all()


def test_paper_4_strategies_are_schemes() -> None:
    """Tests that the strategy without any part takes U-shape's time per token, and the one with all
    parts HAT's.
    """
    from papers.paper_4 import DATASETS, Bench

    point = {one.name: one.default for one in paper("paper-4").box("hat")}
    scales = dict.fromkeys(DATASETS, 1.0)
    found = Bench(point=point, seeds=(0,), link=scales, cloud=scales, latency=0.005)
    assert found.workload("cnn-dm", 1.0).pipeline_length == 4
    for strategy, scheme in (("none", "U-shape"), ("SD + PC + PD", "HAT")):
        assert found.ms("tbt", "specbench", strategy, rate=0.01) == found.ms(
            "tbt", "specbench", scheme, rate=0.01
        )


def test_paper_4_megabytes() -> None:
    """Tests that HAT's printed TTFT on CNN/DM is below the upload alone if a megabyte has 10^6
    bytes, not 2^20.
    """
    said = paper("paper-4").statements["figure-7.possible"]
    times = [
        default("paper-4", "figure-7-upload", megabyte=size).values["figure-7.possible"]
        for size in (10**6, 2**20)
    ]
    assert times == pytest.approx([1061.5, 1012.3], abs=0.1)
    assert [said.agrees(one) for one in times] == [False, True]


def test_paper_4_marks() -> None:
    """Tests that beside the curves of a figure stand the values that the paper prints for it: TTFT
    in Figure 6(a).
    """
    printed = {"HAT": 384.2, "U-Sarathi": 609.2, "U-Medusa": 644.6, "U-shape": 646.2}
    marks = paper_4._marks(key="rate", measure="ttft", dataset="specbench")
    assert marks == {name: [(6.0, value)] for name, value in printed.items()}


def test_paper_5_baselines_decide() -> None:
    """Tests that Random-S takes the printed 5 to 25 % longer if Fixed-S drafts C tokens and S_i is
    uniform, trimmed.
    """
    found = default("paper-5", "figure-3").values
    assert 4.5 <= found["figure-3.random"] < found["figure-3.random-most"] <= 25.5
    whole = default("paper-5", "figure-3", fixed_s="C / N, rounded down").values
    assert whole["figure-3.random-most"] > 35.0


def test_paper_5_times_per_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the setting counts where GoodSpeed takes longest per token, over what Fixed-S
    takes.
    """
    tokens = dict(zip(paper_5.EIGHT, range(12, 12 + 4 * len(paper_5.EIGHT), 4), strict=True))
    monkeypatch.setattr(paper_5, "_play", lambda setting, name, point, seeds: name)
    monkeypatch.setattr(
        paper_5,
        "_round",
        lambda setting, name, point: (
            np.array([0.3, 0.2, 0.1]),
            {"GoodSpeed": tokens[setting], "Fixed-S": 9.0, "Random-S": 10.0}[name],
        ),
    )
    found = paper_5.figure_3({}, (0,)).values
    assert found["figure-3.whole"] == pytest.approx(1.0)
    assert found["figure-3.token"] == pytest.approx(9 / 12) and found[
        "sec-1.latency"
    ] == pytest.approx(2 / 12)


def test_paper_2_what_fcfs_is() -> None:
    """Tests that WISP violates no more than SLED, and more than FCFS with its own cache
    somewhere.
    """
    box = {one.name: one.default for one in paper("paper-2").box("figure-7")}
    sled, cached = (
        paper_2._rates(box, fcfs, (200, 400), (0,))
        for fcfs in ("SLED", "WISP's cache and controller")
    )
    assert (sled["WISP"] - sled["FCFS"]).max() <= 0.005 < (cached["WISP"] - cached["FCFS"]).max()
    assert np.array_equal(sled["WISP"], cached["WISP"])


def test_what_follows() -> None:
    """Tests that rounding is forgiven on both sides, and that else the middle of what follows is
    returned.
    """
    assert follows(1.94, 631.86 / 326.12, digits=2) == 1.94
    assert follows(44.7, 37.9, 43.0, digits=1) == pytest.approx(40.45)
    assert follows(5.0, 4.0) == 4.0
    assert follows(0.3, 0.25, digits=1) == 0.3  # a half rounds up


if __name__ == "__main__":
    values = [f"{json.dumps(', '.join(one))}: {json.dumps(default(*one).values)}" for one in CHEAP]
    RECORD.write_text("{\n" + ",\n".join(values) + "\n}\n")
