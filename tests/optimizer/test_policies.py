"""Policies of one's own: the same events as specopt's, checked decisions, by value and by name,
compared in pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.command_line import CommandLine

from specopt import (
    InvalidInput,
    Policy,
    compare_policies,
    generate,
    save,
    simulate,
    solve,
    to_arrow,
)
from specopt.api import plugins
from specopt.api.simulate import SIMULATORS


def world(kind: str, label: str) -> Any:
    """A workload, by the label of its family."""
    return next(family.build() for family in SIMULATORS[kind].workloads if family.label == label)


class Equal(Policy):
    """Fixed-S again."""

    name = "equal"

    def decide(self, state: Any) -> Any:
        """Share the budget."""
        return [state.budget_tokens // len(state.caps)] * len(state.caps)


class InOrder(Policy):
    """First come, first served again."""

    name = "in-order"

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def decide(self, state: Any) -> Any:
        """Take requests as long as the memory lasts."""
        held = np.cumsum(state.kv_bytes_per_token * (state.new_tokens + state.cached_tokens))
        return np.flatnonzero(held <= state.memory_bytes)

    def learn(self, outcome: Any) -> None:
        """Keep what batches take."""
        self.seconds.append(outcome.seconds)


class Equation3(Policy):
    """HAT again."""

    name = "equation-3"

    def decide(self, state: Any) -> Any:
        """Send what Eq. 3 gives."""
        return state.equation_3_tokens


class Alone(Policy):
    """One task after the other."""

    name = "alone"

    def decide(self, state: Any) -> Any:
        """Return batches of one."""
        return [([task], 2) for task in state.tasks]


class Wrong(Policy):
    """Decides what it was given."""

    name = "wrong"

    def __init__(self, decision: Any = None) -> None:
        self.decision = decision

    def decide(self, state: Any) -> Any:
        """Return it."""
        return self.decision


LONG: dict[str, Any] = {"devices": 6, "seconds": 4.0, "warm_up_seconds": 1.0, "replications": 2}
SHORT: dict[str, Any] = {"requests": 12, "warm_up_requests": 3, "replications": 2}
CASES = [
    ("fair-goodput", "switching", Equal(), "fixed", {"rounds": 20, "replications": 3}),
    ("verification-batch", "mixed-classes", InOrder(), "fcfs", LONG),
    ("prompt-chunking", "specbench", Equation3(), "hat", SHORT),
]


@pytest.mark.parametrize(
    ("kind", "label", "own", "twin", "options"), CASES, ids=[case[0] for case in CASES]
)
def test_the_slow_path_is_the_kernel(
    kind: str, label: str, own: Policy, twin: str, options: dict[str, Any]
) -> None:
    """Tests that a policy that decides as one of specopt's meets the same luck and reaches the
    same, bit by bit.
    """
    mine, theirs = (
        simulate(world(kind, label), policy, seed=5, **options) for policy in (own, twin)
    )
    assert mine.policy == own.name
    assert {name: one.samples.tolist() for name, one in mine.estimates.items()} == {
        name: one.samples.tolist() for name, one in theirs.estimates.items()
    }


def test_policies_learn_what_happened() -> None:
    """Tests that drafts, acceptances and seconds of batches come back, and that every replication
    begins anew.
    """
    seen: list[Any] = []

    class Curious(Equal):
        def start(self, world: Any, seed: int) -> None:
            seen.append(seed)

        def learn(self, outcome: Any) -> None:
            assert (outcome.accepted <= outcome.drafted).all() and (
                outcome.right <= outcome.tested
            ).all()
            seen.append(outcome.drafted.tolist())

    simulate(world("fair-goodput", "fixed"), Curious(), rounds=3, replications=2)
    assert seen[0] == 0 and seen[4] == 1 and len(seen) == 8
    policy = InOrder()
    simulate(world("verification-batch", "one-class"), policy, **(LONG | {"replications": 1}))
    assert policy.seconds and min(policy.seconds) > 0.0


def test_tasks_are_served_by_a_policy() -> None:
    """Tests that what a policy does with the tasks of a problem is a plan, whose latency the judge
    confirms.
    """
    problem = generate("continuous-serving/arrivals", tasks=6, seed=1)
    found = simulate(problem, Alone())
    assert problem.evaluate(found.plan).objective == pytest.approx(found.mean, rel=1e-9)  # type: ignore[attr-defined]
    assert problem.violations(found.plan) == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "label", "decision", "message"),
    [
        (
            "fair-goodput",
            "fixed",
            [99] * 4,
            "expected draft tokens of 4 clients within their caps, at most 24 in total",
        ),
        ("fair-goodput", "fixed", [0.5] * 4, "expected draft tokens of 4 clients"),
        ("verification-batch", "one-class", [7, 7], "expected distinct indices of"),
        ("verification-batch", "one-class", "all", "expected distinct indices of"),
        ("prompt-chunking", "specbench", 0, "expected a number of tokens per chunk, from 1 to"),
        ("prompt-chunking", "specbench", None, "expected a number of tokens per chunk, from 1 to"),
    ],
)
def test_wrong_decisions_are_named(kind: str, label: str, decision: Any, message: str) -> None:
    """Tests that each decision that is none is refused with the policy's name, what was expected
    and what came.
    """
    with pytest.raises(InvalidInput, match=f"policy wrong: {message}.*, got "):
        simulate(world(kind, label), Wrong(decision))


@pytest.mark.parametrize("decision", [None, [([0], 99)], [([], 1)], [([0, 0], 1)]])
def test_wrong_batches_are_named(decision: Any) -> None:
    """Tests that steps that leave out tasks, or draft more than is allowed, are refused."""
    with pytest.raises(InvalidInput, match="policy wrong: expected"):
        simulate(generate("continuous-serving/arrivals", tasks=3, seed=1), Wrong(decision))


@pytest.mark.parametrize("kind", sorted(SIMULATORS))
def test_what_is_no_policy_is_refused(kind: str) -> None:
    """Tests that a number in the place of a policy is one clear error for every simulator."""
    simulator = SIMULATORS[kind]
    place = (
        simulator.workloads[0].build()
        if simulator.workloads
        else generate(f"{kind}/{_FAMILY[kind]}")
    )
    with pytest.raises(InvalidInput, match=r"(policy|plan): expected .*, got 3"):
        simulate(place, 3)


_FAMILY = {
    "serving-latency": "paper-1",
    "continuous-serving": "arrivals",
    "draft-control": "random",
    "draft-stopping": "random",
    "placement": "one-class",
}


def test_policies_are_compared_in_pairs() -> None:
    """Tests that differences are of replications with the same luck, with intervals, as rows and as
    text.
    """
    found = compare_policies(
        ["fixed", Equal(), "robust"],
        {"moving": world("fair-goodput", "switching")},
        rounds=30,
        replications=8,
    )
    same, better = found.rows[1:]
    assert (same["policy"], same["difference"], same["difference_high"]) == ("equal", 0.0, 0.0)
    assert better["difference_low"] > 0.0 and better["mean"] > same["mean"]
    assert (
        better["difference_high"] - better["difference_low"]
        < better["mean_high"] - better["mean_low"]
    )
    assert to_arrow(found).num_rows == 3
    assert str(found).splitlines()[2].split()[:2] == ["moving", "equal"]
    with pytest.raises(InvalidInput, match="expected at least one policy, got none"):
        compare_policies([], [])


def test_policies_of_plug_ins_have_names(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an entry point's policy is played by its name, in Python and on the command
    line.
    """

    class Entry:
        name = "fair-goodput.equal"
        group = plugins.POLICIES
        module = "mine"
        dist = None

        def load(self) -> object:
            return Equal

    monkeypatch.setattr(
        plugins, "_entries", lambda group: (Entry(),) if group == plugins.POLICIES else ()
    )
    plugins._loading.cache_clear()
    try:
        found = simulate(world("fair-goodput", "fixed"), "equal", rounds=5, replications=2)
        assert found.policy == "equal"
        line = "simulate fair-goodput --workload fixed --replications 2 --param rounds=5 --policy"
        shown = cli(f"{line} fixed,equal").out
        assert "fixed" in shown and "equal" in shown
        cli.refuses(
            f"{line} fixed,even",
            "--policy: expected one of robust, gradient, fixed, random, got 'even'",
        )
    finally:
        plugins._loading.cache_clear()


def test_a_result_is_no_world(cli: CommandLine) -> None:
    """Tests that the file of a result in the place of a problem is named as such, and that a
    workload's is played.
    """
    save(solve(generate("draft-allocation/uniform", clients=3, budget=4)), "result.json")
    cli.refuses(
        "simulate result.json --policy online",
        "expected a problem or a workload, got a result for a draft-allocation problem",
    )
    save(world("fair-goodput", "fixed"), "workload.json")
    cli("simulate workload.json --policy fixed --replications 2 --param rounds=5")
