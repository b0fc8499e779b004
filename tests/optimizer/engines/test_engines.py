"""Every engine's configuration: it does at each batch size what the schedule says, by the engine's
own rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.engine_rules import RULES

from specopt.commands.export import export
from specopt.engines import ENGINES
from specopt.models.errors import InvalidInput
from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.schedule import Schedule

OLD, NEW = "1.3.0rc7", "1.3.0rc8"


def in_vllm(config: dict[str, Any], batch: int) -> int:
    """Return what vLLM drafts: inclusive ranges, gaps and tail carry on, clamped."""
    drafts = 0
    for low, _, choice in sorted(config["num_speculative_tokens_per_batch_size"]):
        if low <= batch:
            drafts = choice
    return int(min(drafts, config["num_speculative_tokens"]))


def in_sglang(config: dict[str, Any], batch: int) -> int:
    """Return what SGLang drafts: keys are lower bounds, one candidate is pinned."""
    if "speculative_adaptive" not in config:
        return int(config["speculative_num_steps"])
    slots = {
        int(key): slot
        for key, slot in config["speculative_adaptive_config"].items()
        if key.isdecimal()
    }
    (steps,) = slots[max(key for key in slots if key <= batch)]["candidate_steps"]
    return int(steps)


def in_old_tensorrt(config: dict[str, Any], batch: int) -> int:
    """Return what TensorRT-LLM drafted before March 2026: keys are lower bounds."""
    entries = {int(key): drafts for key, drafts in config["draft_len_schedule"].items()}
    return int(entries[max(key for key in entries if key <= batch)])


def in_new_tensorrt(config: dict[str, Any], batch: int) -> int:
    """Return what TensorRT-LLM drafts since March 2026: keys are upper bounds, nothing above the
    last.
    """
    entries = {int(key): drafts for key, drafts in config["draft_len_schedule"].items()}
    return int(next((entries[key] for key in sorted(entries) if batch <= key), 0))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Schedules with some drafts, of neighbours that may be alike."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    drafts = draw(st.lists(st.integers(0, 7), min_size=len(sizes), max_size=len(sizes)).filter(any))
    highs = np.cumsum(sizes).tolist()
    return Schedule(
        ranges=tuple(zip([1, *(high + 1 for high in highs[:-1])], highs, drafts, strict=True))
    )


@pytest.mark.parametrize(
    ("name", "version", "drafted"),
    [
        ("vllm", None, in_vllm),
        ("sglang", None, in_sglang),
        ("tensorrt-llm", OLD, in_old_tensorrt),
        ("tensorrt-llm", NEW, in_new_tensorrt),
    ],
)
@given(schedule=schedules())
def test_engines_do_what_the_schedule_says(
    name: str,
    version: str | None,
    drafted: Callable[[dict[str, Any], int], int],
    schedule: Schedule,
) -> None:
    """Tests that a configuration keeps the engine's rules and drafts as scheduled at every batch
    size, through JSON.

    TensorRT-LLM takes no longer drafts after shorter ones: exactly these schedules are refused.
    """
    engine = ENGINES[name]
    rises = name == "tensorrt-llm" and schedule.ranges[0][2] != schedule.longest
    if rises:
        with pytest.raises(InvalidInput, match="expects the longest drafts at batch size 1"):
            engine.config(schedule, version)
        return
    config = json.loads(json.dumps(engine.config(schedule, version)))
    RULES[name](config, version)
    batches = range(1, schedule.largest_batch + 1)
    assert [drafted(config, batch) for batch in batches] == [
        schedule.at(batch) for batch in batches
    ]
    assert engine.written(schedule, version)[1]


NOTHING = Schedule(
    ranges=((1, 64, None),), batches=(1, 8), speedups=np.array([[1.0, 0.7], [1.0, 0.5]])
)
MIXED = Schedule(
    ranges=((1, 4, 2), (5, 8, 1), (9, 16, 0)),
    batches=(1, 8, 16),
    speedups=np.array([[1.0, 1.5, 2.0], [1.0, 1.4, 0.9], [1.0, 0.9, 0.5]]),
)


@pytest.mark.parametrize("name", ENGINES)
def test_what_does_not_pay_is_left_out(name: str) -> None:
    """Tests that without a gain there is no configuration, but the advice to leave speculation out,
    with the number.
    """
    engine = ENGINES[name]
    assert engine.config(NOTHING, NEW) is None
    (note,) = engine.written(NOTHING, NEW)[1]
    assert note.startswith("leave ")
    assert "the best draft length, 1, reaches 0.592x" in note


def test_a_command_for_every_engine() -> None:
    """Tests that the command line knows the engines that there are."""
    assert {command.name for command in export.registered_commands} >= set(ENGINES)


@pytest.mark.parametrize("name", ["vllm", "sglang", "llama.cpp"])
def test_other_versions_are_not_vouched_for(name: str) -> None:
    """Tests that a version with rules that are not kept here is not passed over in silence."""
    for version in ("0.1", None):
        notes = " ".join(ENGINES[name].written(MIXED, version)[1])
        assert ("the rules are those of" in notes) == (version is not None)


def test_vllm_is_told_its_limits() -> None:
    """Tests that the notes name data parallelism, the old runner, and batches beyond the table."""
    notes = " ".join(ENGINES["vllm"].written(MIXED, None)[1])
    for words in (
        "data parallelism above 1",
        "drafts 2 at every batch size",
        "V1",
        "beyond 16 use the last",
    ):
        assert words in notes


def test_sglang_flags_say_the_same() -> None:
    """Tests that one length needs no adaptive configuration, and that the flags agree with the
    arguments.
    """
    one = Schedule(ranges=((1, 64, 3),))
    assert ENGINES["sglang"].config(one, None) == {
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
    }
    notes = ENGINES["sglang"].written(MIXED, None)[1]
    assert (
        "--speculative-num-steps 2 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3 "
        in notes[0]
    )
    assert (
        "captured CUDA graph size; capture the last size of every range except the last (4, 8)"
        in notes[-1]
    )


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        ("1.2.1", {"1", "5", "9"}),
        ("1.3.0rc5.post2", {"1", "5", "9"}),
        (OLD, {"1", "5", "9"}),
        (NEW, {"4", "8", "16"}),
        ("v1.3.0rc29", {"4", "8", "16"}),
        ("1.3.0", {"4", "8", "16"}),
        ("1.4", {"4", "8", "16"}),
    ],
)
def test_tensorrt_keys_change_their_meaning_with_the_version(version: str, keys: set[str]) -> None:
    """Tests that the same schedule has lower bounds as keys up to 1.3.0rc7 and upper bounds from
    1.3.0rc8 on.
    """
    config = ENGINES["tensorrt-llm"].config(MIXED, version)
    assert config is not None
    assert set(config["draft_len_schedule"]) == keys


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "lower bounds on the batch size in versions before 1.3.0rc8 and upper bounds"),
        ("latest", "got 'latest'"),
        ("1.1.0", "expected 1.2 or later"),
    ],
)
def test_tensorrt_needs_its_version(version: str | None, message: str) -> None:
    """Tests that without a usable version nothing is exported, as its keys would be ambiguous."""
    with pytest.raises(InvalidInput, match=message):
        ENGINES["tensorrt-llm"].config(MIXED, version)


def test_llama_cpp_takes_the_best_single_length() -> None:
    """Tests that one length is chosen by its mean over all batch sizes, and what that loses is
    said.
    """
    config = ENGINES["llama.cpp"].config(MIXED, None)
    assert config == {"--spec-draft-n-max": 1, "--spec-draft-n-min": 0, "--spec-draft-p-min": 0.0}
    RULES["llama.cpp"](config, None)
    notes = " ".join(ENGINES["llama.cpp"].written(MIXED, None)[1])
    assert (
        "1 reaches 1.236x the throughput without speculation on average, and one length per batch"
        " size would reach 1.409x, so the loss is 12.3 %" in notes
    )
    assert "slower than no speculation at 1 of 3 batch sizes, from 16 to 16" in notes
    with pytest.raises(InvalidInput, match="expected speed-ups from which to choose"):
        ENGINES["llama.cpp"].config(Schedule(ranges=MIXED.ranges), None)


TABLE = "num_speculative_tokens_per_batch_size"
ADAPTIVE = {
    "speculative_num_steps": 2,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 3,
    "speculative_adaptive": True,
}


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("vllm", {"num_speculative_tokens": 0}),
        ("vllm", {"num_speculative_tokens": 1, TABLE: []}),
        ("vllm", {"num_speculative_tokens": 1, TABLE: [[2, 4, 1]]}),
        ("vllm", {"num_speculative_tokens": 1, TABLE: [[1, 4, 1], [4, 8, 0]]}),
        ("vllm", {"num_speculative_tokens": 1, TABLE: [[1, 4, 2]]}),
        ("sglang", ADAPTIVE | {"speculative_eagle_topk": 2}),
        ("sglang", ADAPTIVE | {"speculative_num_draft_tokens": 2}),
        ("sglang", ADAPTIVE | {"speculative_adaptive_config": {}}),
        ("sglang", ADAPTIVE | {"speculative_adaptive_config": {"4": {"candidate_steps": [1]}}}),
        ("sglang", ADAPTIVE | {"speculative_adaptive_config": {"1": {"candidate_steps": [3]}}}),
        ("tensorrt-llm", {"max_draft_len": 4, "draft_len_schedule": {"4": 4}}),
        ("tensorrt-llm", {"max_draft_len": 4, "draft_len_schedule": {"1": 3}}),
        ("tensorrt-llm", {"max_draft_len": 4, "max_concurrency": 8}),
        ("llama.cpp", {"--spec-draft-n-max": 2, "--spec-draft-n-min": 3}),
        ("llama.cpp", {"--spec-draft-n-max": 2, "--spec-draft-p-min": 1.5}),
    ],
)
def test_the_rules_can_fail(name: str, config: Any) -> None:
    """Tests that what an engine refuses breaks a rule."""
    with pytest.raises(AssertionError):
        RULES[name](config, OLD)


@pytest.mark.parametrize(
    ("drafts", "expected"),
    [
        (Setup("mtp"), {"speculative_algorithm": "NEXTN"}),
        (Setup("eagle3-head"), {"speculative_algorithm": "EAGLE3"}),
        (Setup("own"), {}),
        (
            Setup("eagle", mode="adaptive"),
            {"speculative_algorithm": "EAGLE", "speculative_adaptive": True},
        ),
        (
            Setup("eagle", topk=2),
            {
                "speculative_algorithm": "EAGLE",
                "speculative_eagle_topk": 2,
                "speculative_num_draft_tokens": None,
            },
        ),
    ],
)
def test_sglang_is_set_up_as_measured(drafts: Setup, expected: dict[str, Any]) -> None:
    """Tests that the algorithm, trees and adaptive lengths of a measured drafter are what SGLang is
    told.
    """
    assert ENGINES["sglang"].setup(drafts) == expected


ONE = Schedule(ranges=((1, 64, 4),))


@pytest.mark.parametrize("topk", [1, 4])
@pytest.mark.parametrize("mode", ["fixed", "adaptive", "p-min 0.60", "own"])
@pytest.mark.parametrize("drafter", ["", "dspark", "eagle3", "ngram"])
@pytest.mark.parametrize("name", ENGINES)
def test_every_writer_with_every_mode(name: str, drafter: str, mode: str, topk: int) -> None:
    """Tests that a configuration has the mode and the trees that were chosen; where the writer does
    not know them there is none, and a note has the settings to write by hand.
    """
    config, notes = ENGINES[name].written(ONE, NEW, Setup(drafter, mode, topk))
    adaptive = {
        "vllm": ({"enable_adaptive_verification": True}, ("dspark",)),
        "sglang": ({"speculative_adaptive": True}, ("", "dspark", "eagle3")),
    }
    written: dict[str, Any] | None = {} if mode == "fixed" else None
    if mode == "adaptive" and topk == 1 and name in adaptive and drafter in adaptive[name][1]:
        written = adaptive[name][0]
    elif mode == "p-min 0.60" and name == "llama.cpp":
        written = {"--spec-draft-p-min": 0.6, "--spec-draft-n-max": 4}
    if topk > 1:
        written = {"speculative_eagle_topk": 4} if (name, mode) == ("sglang", "fixed") else None
    if written is None:
        assert config is None
        (note,) = notes
        assert f"mode {mode}" in note
        assert "draft length 4 at batch sizes 1 to 64" in note
        assert (f"top-k {topk}" in note) == (topk > 1)
        assert drafter in note
    else:
        assert config is not None
        assert config == config | written
        if mode == "fixed":
            assert not config.keys() & {"enable_adaptive_verification", "speculative_adaptive"}
            assert config.get("--spec-draft-p-min", 0.0) == 0.0


def test_modes_have_no_table() -> None:
    """Tests that a table is not written for a mode that chooses lengths by itself, and that the
    flags of SGLang are those of its configuration.
    """
    config, (note,) = ENGINES["sglang"].written(MIXED, None, Setup("eagle", "adaptive"))
    assert config is None
    assert "draft length 2 at batch sizes 1 to 4, 1 at batch sizes 5 to 8" in note
    _, notes = ENGINES["sglang"].written(ONE, None, Setup("eagle", "adaptive"))
    flags = "--speculative-num-draft-tokens 5 --speculative-algorithm EAGLE --speculative-adaptive"
    assert notes[0].endswith(flags)


def test_llama_cpp_leaves_out_what_pays_at_no_single_length() -> None:
    """Tests that without a single length that gains on average llama.cpp does not draft, 1.0
    included.
    """
    for gain, best in ((1.4, (1, 1.0)), (1.8, (2, pytest.approx((1.8 * 0.6) ** 0.5)))):
        schedule = Schedule(
            ranges=((1, 1, 2), (2, 8, 1)),
            batches=(1, 8),
            speedups=np.array([[1.0, 0.5, gain], [1.0, 2.0, 0.6]]),
        )
        assert schedule.best_single() == best
        config = ENGINES["llama.cpp"].config(schedule, None)
        assert (config or {}).get("--spec-draft-n-max") == (2 if gain == 1.8 else None)
