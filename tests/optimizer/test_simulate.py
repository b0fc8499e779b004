"""The front door of the simulators, from Python and on the command line: one shape for all kinds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specopt
from specopt.cli import run
from specopt.commands.simulate import POLICIES, WORKLOADS
from specopt.simulate import SIMULATORS, Simulator
from specopt.solvers.simulation import Estimate, Simulation

Invoke = Callable[..., tuple[int, str, str]]

SHORT: dict[str, dict[str, Any]] = {
    "serving-latency": {},
    "draft-control": {"iterations": 20},
    "fair-goodput": {"rounds": 30},
    "verification-batch": {"devices": 20, "seconds": 10.0, "warm_up_seconds": 2.0},
    "prompt-chunking": {"requests": 20, "warm_up_requests": 5},
}
BY_POLICY = tuple(one for one in SIMULATORS if one.policies)


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """A function that runs one command in this process and returns exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def played(simulator: Simulator, **options: Any) -> Simulation:
    """A short simulation of a kind: the first policy on the first workload, or a plan."""
    if simulator.policies:
        world = next(iter(simulator.worlds.values())).build()
        return specopt.simulate(world, simulator.policies[0], **SHORT[simulator.kind], **options)
    problem = specopt.generate("serving-latency/paper-1", tasks=4, max_output=40, seed=3)
    return specopt.simulate(problem, specopt.solve(problem, "static-batching"), **options)


def words_of(simulator: Simulator) -> list[str]:
    """The command line of a short simulation."""
    params = [f"--param={name}={value}" for name, value in SHORT[simulator.kind].items()]
    return [simulator.kind, "--policy", simulator.policies[0], "--workload", next(iter(simulator.worlds)), *params]


@pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda one: one.kind)
def test_one_shape(simulator: Simulator) -> None:
    """Tests that every kind gives mean, interval, quantiles and samples alike, and JSON that a seed decides."""
    found, again = (played(simulator, seed=2, replications=4) for _ in range(2))
    other = played(simulator, seed=9, replications=4)
    assert (found.kind, found.replications, found.seed, len(found.samples)) == (simulator.kind, 4, 2, 4)
    assert found.samples.tolist() == again.samples.tolist()
    assert [one.samples.tolist() for one in found.estimates.values()] != [
        one.samples.tolist() for one in other.estimates.values()
    ]
    low, high = found.confidence_interval
    assert (low + high) / 2 == pytest.approx(found.mean)
    assert list(found.quantiles.values()) == np.quantile(found.samples, list(found.quantiles)).tolist()
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data == found.to_dict() and data | {"seconds": 0} == again.to_dict() | {"seconds": 0}
    assert data["mean"] == found.mean and data["confidence_interval"] == [low, high]
    assert data["estimates"][found.quantity]["quantiles"] == data["quantiles"]
    for word in (simulator.kind, "played 4 times", f"{found.mean:.6g}"):
        assert word in str(found)


@pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda one: one.kind)
def test_replications_continue(simulator: Simulator) -> None:
    """Tests that more replications begin with the same ones, and narrow the interval about as their root says."""
    few, many = (played(simulator, replications=count) for count in (10, 160))
    assert many.samples[:10].tolist() == few.samples.tolist()
    spread = float(many.samples.std(ddof=1))
    assert many.standard_error == pytest.approx(spread / math.sqrt(160), rel=0.1)
    if spread:
        assert many.standard_error < few.standard_error


def test_one_replication_has_no_interval() -> None:
    """Tests that what one replication cannot tell is NaN, and null as JSON."""
    alone = Estimate.of([3.0])
    assert alone.mean == 3.0 and math.isnan(alone.standard_error) and math.isnan(alone.confidence_interval[0])
    assert alone.to_dict()["confidence_interval"] == [None, None]


def test_callback_sees_the_mean() -> None:
    """Tests that every simulator tells the replications done and, at the end, the mean that it returns."""
    for simulator in BY_POLICY:
        seen: list[tuple[int, float]] = []
        found = simulator.play(
            next(iter(simulator.worlds.values())).build(), simulator.policies[0], replications=6,
            callback=lambda *now: seen.append(now), **SHORT[simulator.kind],  # noqa: B023
        )  # fmt: skip
        done, mean = seen[-1]
        assert done == 6 and mean == pytest.approx(found.mean)


@pytest.mark.parametrize("simulator", BY_POLICY, ids=lambda one: one.kind)
def test_every_policy_on_every_workload(simulator: Simulator) -> None:
    """Tests that names combine freely, and that only the right parts differ."""
    for family in simulator.worlds.values():
        world = family.build()
        for policy in simulator.policies if family.name.endswith(("fixed", "classes", "specbench", "paper-3")) else (
            simulator.policies[:1]
        ):  # fmt: skip
            found = specopt.simulate(world, policy, replications=2, **SHORT[simulator.kind])
            assert found.policy == policy and np.isfinite(found.samples).all()


@pytest.mark.parametrize("simulator", BY_POLICY, ids=lambda one: one.kind)
def test_command(simulator: Simulator, invoke: Invoke) -> None:
    """Tests that the command prints a table, and with --json what the library returns."""
    words = words_of(simulator)
    code, out, _ = invoke("simulate", *words, "--replications", 3)
    assert code == 0
    for word in (simulator.kind, simulator.policies[0], "played 3 times", "95 % confidence", "quantile", "95%"):
        assert word in out
    code, out, _ = invoke("simulate", *words, "--replications", 3, "--seed", 4, "--json")
    assert code == 0
    world = next(iter(simulator.worlds.values())).build()
    expected = specopt.simulate(world, simulator.policies[0], replications=3, seed=4, **SHORT[simulator.kind])
    assert json.loads(out) | {"seconds": 0} == expected.to_dict() | {"seconds": 0}


def test_command_sets_workload_and_seed(invoke: Invoke) -> None:
    """Tests that --param reaches the workload, and --seed a workload that is drawn."""
    base = ["simulate", "fair-goodput", "--policy", "fixed", "--workload", "random", "--param", "rounds=5"]
    few = json.loads(invoke(*base, "--param", "clients=3", "--replications", 2, "--json")[1])
    assert len(few["benchmark"]["goodput"]) == 3 and few["rounds"] == 5
    one, two = (json.loads(invoke(*base, "--seed", seed, "--replications", 2, "--json")[1]) for seed in (1, 2))
    assert one["model"] != two["model"]


def test_help_lists_all_names(invoke: Invoke) -> None:
    """Tests that --help names every policy and every workload of every kind."""
    for simulator in BY_POLICY:
        assert f"{simulator.kind}: {', '.join(simulator.policies)}" in POLICIES
        if simulator.kind != "draft-control":
            assert f"{simulator.kind}: {', '.join(simulator.worlds)}" in WORKLOADS
    code, out, _ = invoke("simulate", "--help")
    assert code == 0 and "--policy" in out and "u-sarathi" in out and "mixed-classes" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no-kind", "--policy", "x", "--workload", "y"], ["KIND", "fair-goodput", "'no-kind'"]),
        (["serving-latency", "--policy", "x", "--workload", "y"], ["KIND", "fair-goodput", "'serving-latency'"]),
        (["fair-goodput", "--policy", "best", "--workload", "fixed"], ["--policy", "robust, gradient", "'best'"]),
        (["fair-goodput", "--policy", "robust", "--workload", "x"], ["--workload", "fixed, random", "'x'"]),
        (["fair-goodput", "--workload", "fixed"], ["--policy", "robust", "None"]),
        (["fair-goodput", "--policy", "robust"], ["--workload", "fixed", "None"]),
        (["fair-goodput", "--policy", "robust", "--workload", "fixed", "--param", "x=1"], ["--param x", "clients"]),
        (
            ["fair-goodput", "--policy", "robust", "--workload", "fixed", "--param", "rounds=1.5"],
            ["--param rounds", "an integer", "'1.5'"],
        ),
        (["fair-goodput", "--policy", "robust", "--workload", "fixed", "--param", "clients=-1"], ["clients", "-1"]),
        (["fair-goodput", "--policy", "robust", "--workload", "fixed", "--iterations", "3"], ["iterations", "rounds"]),
        (["fair-goodput", "--policy", "robust", "--workload", "fixed", "--replications", "0"], ["replications", "0"]),
        (["fair-goodput", "r.json", "--policy", "robust", "--workload", "fixed"], ["RESULT", "r.json"]),
        (["fair-goodput"], ["RESULT", "--policy"]),
    ],
)  # fmt: skip
def test_command_refuses(words: list[str], expected: list[str], invoke: Invoke) -> None:
    """Tests that bad usage is one clear message with the names that exist, and exit code 2."""
    code, out, err = invoke("simulate", *words)
    assert (code, out) == (2, "")
    assert err.startswith("specopt: ") and err.count("\n") == 1, err
    assert all(word in err for word in expected), err


def test_options_of_another_kind_are_refused(tmp_path: Path) -> None:
    """Tests that the front door names the options that the simulator has."""
    problem = specopt.generate("draft-control/paper-3")
    with pytest.raises(specopt.InvalidInput, match="devices: draft-control has no such option; it has iterations"):
        specopt.simulate(problem, "llm-alone", devices=3)
    with pytest.raises(specopt.InvalidInput, match="policy"):
        specopt.simulate(problem, None)
