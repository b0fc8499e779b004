"""Results of an engine: sweeps, predictions and regrets, from known throughput."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specopt.measuring.record import Record
from specopt.models.errors import InvalidInput
from specopt.models.load import Load, Seen
from testbed.engine import campaign, validation
from testbed.engine.loads import MIXED, REQUESTS, all_loads
from testbed.engine.results import (
    FORMAT,
    LENGTHS,
    gain,
    mixed,
    predictions,
    read_runs,
    regrets,
    seen,
    speeds,
    spread,
    sweep_of,
)
from testbed.engine.serve import ENVIRONMENT
from testbed.engine.tables import write_csv
from testbed.engine.validation import BELIEVED, RECORD, off_withheld
from testbed.prompts import KINDS


def run(length: int | None, factor: float = 1.0) -> dict[str, Any]:
    """Return results of an engine whose step takes 20 ms plus 1 ms per token, with 70 % of drafts
    accepted.
    """
    loads: list[dict[str, Any]] = []
    for prompts in ("tuning", "unseen"):
        for concurrency in REQUESTS:
            drafts = length or 0
            made = sum(0.7**place for place in range(drafts + 1))
            step = (0.02 + 0.001 * concurrency * (1 + drafts)) * (
                1.02 if length is not None else 1.0
            )
            tokens = round(1e6 * concurrency * made * factor)
            loads.append(
                {
                    "prompts": prompts,
                    "workload": MIXED,
                    "concurrency": concurrency,
                    "tokens": tokens,
                    "processor_seconds": 1e6 * step,
                    "counters": {},
                }
            )
    return {"format": FORMAT, "loads": loads}


@pytest.fixture
def runs() -> dict[str, dict[str, Any]]:
    """Return runs of all fixed settings."""
    return {"none": run(None)} | {str(length): run(length) for length in LENGTHS["ngram"]}


def test_loads_are_balanced_and_share_no_prompt() -> None:
    """Tests that every kind occurs equally often, that unseen prompts were not used for tuning, and
    that rows are full.
    """
    loads = all_loads(alone=True)
    texts: dict[str, set[str]] = {}
    for load in loads:
        kinds = [prompt.kind for prompt in load.texts]
        assert len(kinds) == load.requests == len(load.tokens)
        assert load.concurrency <= load.requests
        if load.workload == MIXED:
            assert {kinds.count(kind) for kind in KINDS} == {load.requests // len(KINDS)}
        else:
            assert set(kinds) == {load.workload}
        texts.setdefault(load.prompts, set()).update(prompt.text for prompt in load.texts)
    assert not texts["tuning"] & texts["unseen"]


def test_what_tuning_does_not_see_is_predicted(runs: dict[str, Any]) -> None:
    """Tests that points between measured ones are predicted within 8 % for smooth steps, and that
    none of them is used.
    """
    found = predictions(runs)
    known = {one.point for one in seen(sweep_of(runs, "tuning")).measurements}
    assert not any(one.point in known for one in found if one.prompts == "tuning")
    assert len(found) == 2 * len(REQUESTS) * (1 + len(LENGTHS["ngram"])) - len(known)
    drafted = [one for one in found if one.point.draft_length != 0]
    assert max(abs(one.error) for one in drafted) < 0.08
    assert sum(one.held for one in drafted) >= 0.8 * len(drafted)


def test_regrets_are_against_the_best_fixed_setting(runs: dict[str, Any]) -> None:
    """Tests that the best setting at each concurrency loses nothing, and that a table that is 10 %
    slower loses 10 %.
    """
    found = regrets(runs)
    assert all(min(losses) == 0.0 for losses in zip(*found.values(), strict=True))
    slower = regrets({"none": runs["none"], "table": run(None, factor=0.9)})
    assert slower["table"] == pytest.approx([0.1] * len(REQUESTS), abs=1e-6)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Tests that a file that is not a result is reported, and that missing settings are omitted."""
    (tmp_path / "1").mkdir()
    (tmp_path / "1/none.json").write_text(json.dumps(run(None)))
    assert list(read_runs(tmp_path, "ngram")) == ["none"]
    (tmp_path / "1/ngram-3.json").write_text("[]")
    with pytest.raises(InvalidInput, match=r"ngram-3\.json: expected results of an engine"):
        read_runs(tmp_path, "ngram")


def test_repetitions_are_put_together(tmp_path: Path) -> None:
    """Tests that the loads of every repetition are used, that a speed is their geometric mean, and
    that their differences are reported.
    """
    for folder, factor in (("1", 1.0), ("2", 1.21)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "none.json").write_text(json.dumps(run(None, factor)))
    (tmp_path / "1/ngram-1.json").write_text(json.dumps(run(None, 1.1)))
    (tmp_path / "2/ngram-1.json").write_text(json.dumps(run(None, 1.1 * 1.21)))
    runs, once = read_runs(tmp_path, "ngram"), run(None)
    assert [len(found["loads"]) for found in runs.values()] == [4 * len(REQUESTS)] * 2
    expected = {at: 1.1 * speed for at, speed in speeds(once, "unseen").items()}
    assert speeds(runs["none"], "unseen") == pytest.approx(expected, rel=1e-5)
    assert spread(runs) == pytest.approx(math.log(1.21) / math.sqrt(2.0), rel=1e-4)
    assert math.isnan(spread({"none": once}))
    found = gain(runs["1"], runs["none"])
    assert (found.low, found.value, found.high) == pytest.approx((0.1, 0.1, 0.1), rel=1e-4)


def test_loads_withheld_are_predicted_better_once_corrected(tmp_path: Path) -> None:
    """Tests that a server that is slower than the sweep by a constant is predicted correctly after
    the correction, and wrongly before.
    """
    runs = {"none": run(None)} | {str(length): run(length) for length in LENGTHS["ngram"]}
    (tmp_path / BELIEVED).write_text(write_csv(sweep_of(runs, "tuning")))
    served_loads = [
        Seen(
            load["concurrency"],
            length,
            Load(0.8 * load["tokens"] / load["processor_seconds"], 0.1, None),
        )
        for length in validation.LENGTHS
        for load in mixed(run(length), "tuning")
    ]
    (tmp_path / RECORD).write_text(json.dumps(dataclasses.asdict(Record("", served_loads))))
    found = off_withheld(tmp_path)
    assert (
        found["before"].keys()
        == found["after"].keys()
        == {(2, None), (8, None), (2, 3), (8, 3)} | {(concurrency, 5) for concurrency in REQUESTS}
    )
    assert list(found["before"].values()) == pytest.approx([0.25] * 9, abs=1e-4)
    assert list(found["after"].values()) == pytest.approx([0.0] * 9, abs=0.01)


TORCH = """
import os

threads = int(os.environ.get("OMP_NUM_THREADS", 8))


def set_num_threads(count):
    global threads
    threads = count


def get_num_threads():
    return threads
"""
VLLM = """
from types import SimpleNamespace as Some

import torch

assert torch.threads == 1, "read while torch was imported"
__version__ = "0"


class SamplingParams:
    def __init__(self, max_tokens, **_):
        self.count = max_tokens


class LLM:
    def __init__(self, *_, speculative_config, **__):
        torch.set_num_threads(8)
        self.late, self.llm_engine, self.asked = speculative_config is not None, self, {}

    def add_request(self, name, prompt, sampling):
        self.asked[name] = sampling.count

    def step(self):
        assert self.late or torch.threads == 1
        if self.late:
            torch.set_num_threads(2)
        ended = [
            Some(request_id=name, finished=True, outputs=[Some(token_ids=[0] * count)])
            for name, count in self.asked.items()
        ]
        self.asked = {}
        return ended

    def get_metrics(self):
        return []
"""


def served(folder: Path, setting: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one setting with stand-ins for torch, its models and the engine, which starts with 8
    threads.
    """
    (folder / "torch.py").write_text(TORCH)
    (folder / "vllm.py").write_text(VLLM)
    (folder / "sitecustomize.py").write_text(
        "import sys, types\n"
        "found = sys.modules['testbed.checkpoints'] = types.ModuleType('testbed.checkpoints')\n"
        "found.prompt_tokens = lambda text: [0]\n"
    )
    arguments = [
        sys.executable,
        "-P",
        "-m",
        "testbed.engine.serve",
        str(folder),
        setting,
        str(folder / "found.json"),
    ]
    here = {
        **os.environ,
        "PYTHONPATH": f"{folder}:{Path(campaign.__file__).parents[2]}",
        **environment,
    }
    return subprocess.run(arguments, env=here, capture_output=True, text=True, check=False)


def test_one_thread_serves_every_load(tmp_path: Path) -> None:
    """Tests that torch reads its threads when it is imported, and that changes during the start of
    the engine do not persist.
    """
    done = served(tmp_path, "null", **ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "found.json").read_text())["threads"] == 1


def test_threads_that_a_drafter_sets_are_refused(tmp_path: Path) -> None:
    """Tests that nothing is written if a drafter sets threads while it serves, or if Python had
    others.
    """
    assert "expected one thread, got 2" in served(tmp_path, '{"method": "x"}', **ENVIRONMENT).stderr
    said = served(tmp_path, "null", **ENVIRONMENT | {"OMP_NUM_THREADS": "2"}).stderr
    assert "expected OMP_NUM_THREADS=1 before Python starts" in said
    assert not (tmp_path / "found.json").exists()


def test_the_campaign_says_that_it_shows_what_is_there(
    runs: dict[str, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that a setting with a file is reported and not measured, unless the file belongs to
    another setting.
    """
    started: list[dict[str, str]] = []
    monkeypatch.setattr(campaign, "RUNS", tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *_, env, **__: started.append(env))
    stand_in = ModuleType("stand-in")
    stand_in.DRAFT, stand_in.write_folders = Path(), lambda *_: None  # type: ignore[attr-defined]
    for name in ("testbed.checkpoints", "testbed.engine.checkpoints"):
        monkeypatch.setitem(sys.modules, name, stand_in)
    known = runs["none"] | {"date": "2026-11-22", "speculative_config": None}
    (tmp_path / "1").mkdir()
    (tmp_path / "1/none.json").write_text(json.dumps(known))
    campaign.measure(tmp_path, "none", None, 1)
    assert capsys.readouterr().out.startswith(
        f"{tmp_path}/1/none.json: measured 2026-11-22, not again"
    )
    assert started == []
    campaign.measure(tmp_path, "none", {"method": "ngram"}, 1)
    campaign.measure(tmp_path, "none", None, 2)
    assert [ENVIRONMENT.items() <= env.items() for env in started] == [True, True]
