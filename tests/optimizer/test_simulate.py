"""The front door of the simulators, from Python and on the command line: one shape for all
kinds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specopt
from specopt.commands.cli import run
from specopt.commands.simulate import POLICIES, WORKLOADS
from specopt.kinds import KINDS
from specopt.kinds.kind import Kind, Simulator
from specopt.solvers.simulation import Estimate, Simulation

Invoke = Callable[..., tuple[int, str, str]]

SHORT: dict[str, dict[str, Any]] = {
    "serving-latency": {},
    "draft-control": {"iterations": 20},
    "fair-goodput": {"rounds": 30},
    "verification-batch": {"devices": 20, "seconds": 10.0, "warm_up_seconds": 2.0},
    "prompt-chunking": {"requests": 20, "warm_up_requests": 5},
}
PLANNED: dict[str, Callable[[], tuple[Any, str]]] = {
    "serving-latency": lambda: (
        specopt.generate("serving-latency/paper-1", tasks=4, max_output=40, seed=3),
        "static-batching",
    ),
    "continuous-serving": lambda: (
        specopt.generate("continuous-serving/paper-1", tasks=4, max_output=40, seed=3),
        "rebatching",
    ),
    "draft-stopping": lambda: (specopt.generate("draft-stopping/mixed", max_draft=4), "belief"),
    "placement": lambda: (specopt.generate("placement/one-class"), "all-device"),
}
"""What is played of kinds without policies: a problem, and a method that plans."""

PLAYED = tuple(kind for kind in KINDS if kind.simulator)
BY_POLICY = tuple(kind for kind in KINDS if kind.simulator and kind.simulator.policies)


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """A function that runs one command in this process and returns exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def simulator_of(kind: Kind) -> Simulator:
    """The simulator of a kind that has one."""
    assert kind.simulator is not None
    return kind.simulator


def world_of(kind: Kind) -> Any:
    """The first workload of a kind."""
    return simulator_of(kind).workloads[0].build()


def played(kind: Kind, **options: Any) -> Simulation:
    """A short simulation of a kind: the first policy on the first workload, or a plan."""
    if policies := simulator_of(kind).policies:
        return specopt.simulate(world_of(kind), policies[0], **SHORT[kind.name], **options)
    problem, method = PLANNED[kind.name]()
    return specopt.simulate(problem, specopt.solve(problem, method), **options)


def words_of(kind: Kind) -> list[str]:
    """The command line of a short simulation."""
    params = [f"--param={name}={value}" for name, value in SHORT[kind.name].items()]
    own = simulator_of(kind)
    return [kind.name, "--policy", own.policies[0], "--workload", own.workloads[0].label, *params]


@pytest.mark.parametrize("kind", PLAYED, ids=lambda one: one.name)
def test_one_shape(kind: Kind) -> None:
    """Tests that every kind gives mean, interval, quantiles and samples alike, and JSON that a seed
    decides.
    """
    found, again = (played(kind, seed=2, replications=4) for _ in range(2))
    other = played(kind, seed=9, replications=4)
    assert (found.kind, found.replications, found.seed, len(found.samples)) == (kind.name, 4, 2, 4)
    assert found.samples.tolist() == again.samples.tolist()
    assert [one.samples.tolist() for one in found.estimates.values()] != [
        one.samples.tolist() for one in other.estimates.values()
    ]
    low, high = found.confidence_interval
    assert (low + high) / 2 == pytest.approx(found.mean)
    assert (
        list(found.quantiles.values()) == np.quantile(found.samples, list(found.quantiles)).tolist()
    )
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data == found.to_dict() and data | {"seconds": 0} == again.to_dict() | {"seconds": 0}
    assert data["mean"] == found.mean and data["confidence_interval"] == [low, high]
    assert data["estimates"][found.quantity]["quantiles"] == data["quantiles"]
    for word in (kind.name, "played 4 times", f"{found.mean:.6g}"):
        assert word in str(found)


@pytest.mark.parametrize("kind", PLAYED, ids=lambda one: one.name)
def test_replications_continue(kind: Kind) -> None:
    """Tests that more replications begin with the same ones, and narrow the interval about as their
    root says.
    """
    few, many = (played(kind, replications=count) for count in (10, 160))
    assert many.samples[:10].tolist() == few.samples.tolist()
    spread = float(many.samples.std(ddof=1))
    assert many.standard_error == pytest.approx(spread / math.sqrt(160), rel=0.1)
    if spread:
        assert many.standard_error < few.standard_error


def test_one_replication_has_no_interval() -> None:
    """Tests that what one replication cannot tell is NaN, and null as JSON."""
    alone = Estimate.of([3.0])
    assert (
        alone.mean == 3.0
        and math.isnan(alone.standard_error)
        and math.isnan(alone.confidence_interval[0])
    )
    assert alone.to_dict()["confidence_interval"] == [None, None]


def test_callback_sees_the_mean() -> None:
    """Tests that every simulator tells the replications done and, at the end, the mean that it
    returns.
    """
    for kind in BY_POLICY:
        seen: list[tuple[int, float]] = []
        found = simulator_of(kind).play(
            world_of(kind),
            simulator_of(kind).policies[0],
            replications=6,
            callback=lambda *now, seen=seen: seen.append(now),
            **SHORT[kind.name],
        )
        done, mean = seen[-1]
        assert done == 6 and mean == pytest.approx(found.mean)


@pytest.mark.parametrize("kind", BY_POLICY, ids=lambda one: one.name)
def test_every_policy_on_every_workload(kind: Kind) -> None:
    """Tests that every policy plays on the first workload, and the first policy on every
    workload.
    """
    for place, family in enumerate(simulator_of(kind).workloads):
        world = family.build()
        for policy in simulator_of(kind).policies[: 1 if place else None]:
            found = specopt.simulate(world, policy, replications=2, **SHORT[kind.name])
            assert found.policy == policy and np.isfinite(found.samples).all()


@pytest.mark.parametrize("kind", BY_POLICY, ids=lambda one: one.name)
def test_command(kind: Kind, invoke: Invoke) -> None:
    """Tests that the command prints a table, and with --json what the library returns."""
    words = words_of(kind)
    code, out, _ = invoke("simulate", *words, "--replications", 3)
    assert code == 0
    for word in (
        kind.name,
        simulator_of(kind).policies[0],
        "played 3 times",
        "95 % confidence",
        "quantile",
        "95%",
    ):
        assert word in out
    code, out, _ = invoke("simulate", *words, "--replications", 3, "--seed", 4, "--json")
    assert code == 0
    world = world_of(kind)
    expected = specopt.simulate(
        world, simulator_of(kind).policies[0], replications=3, seed=4, **SHORT[kind.name]
    )
    assert json.loads(out) | {"seconds": 0} == expected.to_dict() | {"seconds": 0}


def test_command_sets_workload_and_seed(invoke: Invoke) -> None:
    """Tests that --param reaches the workload, and --seed a workload that is drawn."""
    base = [
        "simulate",
        "fair-goodput",
        "--policy",
        "fixed",
        "--workload",
        "random",
        "--param",
        "rounds=5",
    ]
    few = json.loads(invoke(*base, "--param", "clients=3", "--replications", 2, "--json")[1])
    assert len(few["benchmark"]["goodput"]) == 3 and few["rounds"] == 5
    one, two = (
        json.loads(invoke(*base, "--seed", seed, "--replications", 2, "--json")[1])
        for seed in (1, 2)
    )
    assert one["model"] != two["model"]


def test_help_lists_all_names(invoke: Invoke) -> None:
    """Tests that --help names every policy and every workload of every kind."""
    for kind in BY_POLICY:
        assert f"{kind.name}: {', '.join(simulator_of(kind).policies)}" in POLICIES
        if kind.name != "draft-control":
            assert (
                f"{kind.name}: {', '.join(one.label for one in simulator_of(kind).workloads)}"
                in WORKLOADS
            )
    code, out, _ = invoke("simulate", "--help")
    assert code == 0 and "--policy" in out and "u-sarathi" in out and "mixed-classes" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no-kind", "--policy", "x", "--workload", "y"], ["KIND", "fair-goodput", "'no-kind'"]),
        (
            ["serving-latency", "--policy", "x", "--workload", "y"],
            ["KIND", "fair-goodput", "'serving-latency'"],
        ),
        (
            ["fair-goodput", "--policy", "best", "--workload", "fixed"],
            ["--policy", "robust, gradient", "'best'"],
        ),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "x"],
            ["--workload", "fixed, random", "'x'"],
        ),
        (["fair-goodput", "--workload", "fixed"], ["--policy", "robust", "None"]),
        (["fair-goodput", "--policy", "robust"], ["--workload", "fixed", "None"]),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "fixed", "--param", "x=1"],
            ["--param x", "clients"],
        ),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "fixed", "--param", "rounds=1.5"],
            ["--param rounds", "an integer", "'1.5'"],
        ),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "fixed", "--param", "clients=-1"],
            ["clients", "-1"],
        ),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "fixed", "--iterations", "3"],
            ["iterations", "rounds"],
        ),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "fixed", "--replications", "0"],
            ["replications", "0"],
        ),
        (
            ["fair-goodput", "r.json", "--policy", "robust", "--workload", "fixed"],
            ["RESULT", "r.json"],
        ),
        (["fair-goodput"], ["RESULT", "--policy"]),
    ],
)
def test_command_refuses(words: list[str], expected: list[str], invoke: Invoke) -> None:
    """Tests that bad usage is one clear message with the names that exist, and exit code 2."""
    code, out, err = invoke("simulate", *words)
    assert (code, out) == (2, "")
    assert err.startswith("specopt: ") and err.count("\n") == 1, err
    assert all(word in err for word in expected), err


def test_a_policy_on_the_tasks_of_a_file(tmp_path: Path, invoke: Invoke) -> None:
    """Tests that a policy serves a problem once, and that asking for more is refused."""
    problem = specopt.generate("continuous-serving/arrivals", tasks=3, max_output=9)
    specopt.save(problem, tmp_path / "problem.json")
    words = (
        "simulate",
        str(tmp_path / "problem.json"),
        "--policy",
        "continuous",
        "--param",
        "speculation_length=2",
    )
    code, out, _ = invoke(*words, "--json")
    assert code == 0
    found = specopt.simulate(problem, "continuous", speculation_length=2)
    assert json.loads(out) | {"seconds": 0} == found.to_dict() | {
        "seconds": 0
    }  # the seed is the same
    code, out, _ = invoke(*words)
    assert code == 0 and "over 3 tasks" in out
    code, _, err = invoke(*words, "--replications", 7)
    assert code == 2 and "a policy is played once" in err


def test_options_of_another_kind_are_refused(tmp_path: Path) -> None:
    """Tests that the front door names the options that the simulator has."""
    problem = specopt.generate("draft-control/paper-3")
    with pytest.raises(
        specopt.InvalidInput,
        match=r"devices: .* takes no such option \(got 3\); it takes iterations",
    ):
        specopt.simulate(problem, "llm-alone", devices=3)
    with pytest.raises(specopt.InvalidInput, match="policy"):
        specopt.simulate(problem, None)
