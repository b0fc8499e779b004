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
from helpers.command_line import CommandLine

import specopt
from specopt.commands.simulate import POLICIES, WORKLOADS
from specopt.kinds import KINDS
from specopt.kinds.kind import Kind, Simulator
from specopt.solvers.simulation import Estimate, Simulation

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
    for word in (kind.name, "simulated 4 times", f"{found.mean:.6g}"):
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
def test_command(cli: CommandLine, kind: Kind) -> None:
    """Tests that the command prints a table, and with --json what the library returns."""
    own = simulator_of(kind)
    line = f"simulate {kind.name} --policy {own.policies[0]} --workload {own.workloads[0].label}"
    line += " --replications 3 --seed 4"
    for name, value in SHORT[kind.name].items():
        line += f" --param {name}={value}"
    shown = cli(line).out
    for word in (
        kind.name,
        own.policies[0],
        "simulated 3 times",
        "95 % confidence",
        "quantile",
        "95%",
    ):
        assert word in shown
    expected = played(kind, replications=3, seed=4).to_dict()
    assert cli(f"{line} --json").json | {"seconds": 0} == expected | {"seconds": 0}


@pytest.mark.parametrize(
    ("family", "given", "words"),
    [
        (
            "serving-latency/paper-1 --param tasks=4 --param max_output=50 --seed 3",
            {"replications": 50},
            [
                "simulated 50 times",
                "95 % confidence",
                "communication",
                "model",
                "known lengths",
                "quantile",
                "95%",
            ],
        ),
        (
            "draft-control/paper-3",
            {"replications": 20, "iterations": 30, "response_tokens": 64},
            [
                "policy-iteration",
                "95 % confidence",
                "mean / model",
                "responses of 64 tokens",
                "50%",
            ],
        ),
    ],
)
def test_command_plays_a_plan(
    cli: CommandLine, family: str, given: dict[str, Any], words: list[str]
) -> None:
    """Tests that mean, interval, quantiles and the judge's number are shown, and that --json prints
    what the library returns, decided by the seed.
    """
    cli(f"generate {family} -o problem.json")
    cli("solve problem.json -o result.json")
    line = "simulate problem.json result.json --seed 5"
    for name, value in given.items():
        line += f" --{name.replace('_', '-')} {value}"
    shown = cli(line).out
    for word in words:
        assert word in shown
    problem = specopt.load("problem.json")
    result = specopt.load("result.json", specopt.Result)
    expected = specopt.simulate(problem, result, seed=5, **given).to_dict()
    found = cli(f"{line} --json").json
    assert found | {"seconds": 0} == expected | {"seconds": 0}
    assert found["model"] == result.objective


def test_command_lets_finished_tasks_leave(cli: CommandLine) -> None:
    """Tests that a plan is simulated 1000 times unless an option says how often."""
    cli("generate serving-latency/paper-1 --param tasks=4 --param max_output=50 -o problem.json")
    cli("solve problem.json -o result.json")
    shown = cli("simulate problem.json result.json --drop-finished").out
    assert "simulated 1000 times" in shown and "leave at once" in shown


def test_command_sets_workload_and_seed(cli: CommandLine) -> None:
    """Tests that --param reaches the workload, and --seed a workload that is drawn."""
    line = "simulate fair-goodput --policy fixed --workload random --param rounds=5"
    line += " --replications 2 --json"
    few = cli(f"{line} --param clients=3").json
    assert len(few["benchmark"]["goodput"]) == 3 and few["rounds"] == 5
    assert cli(f"{line} --seed 1").json["model"] != cli(f"{line} --seed 2").json["model"]


def test_help_lists_all_names(cli: CommandLine) -> None:
    """Tests that --help names every policy and every workload of every kind."""
    for kind in BY_POLICY:
        own = simulator_of(kind)
        assert f"{kind.name}: {', '.join(own.policies)}" in POLICIES
        if kind.name != "draft-control":
            assert f"{kind.name}: {', '.join(one.label for one in own.workloads)}" in WORKLOADS
    shown = cli("simulate --help").out
    assert "--policy" in shown and "u-sarathi" in shown and "mixed-classes" in shown


FAIR = "fair-goodput --policy robust --workload fixed"
SERVING, CONTROL, ALLOCATION = (
    f"{name}.json {name}-result.json" for name in ("serving", "control", "allocation")
)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of problems of three kinds, and a result of each."""
    folder = tmp_path_factory.mktemp("planned")
    for name, family, parameters in (
        ("serving", "serving-latency/paper-1", {"tasks": 3, "max_output": 30}),
        ("control", "draft-control/paper-3", {}),
        ("allocation", "draft-allocation/uniform", {}),
    ):
        problem = specopt.generate(family, **parameters)
        specopt.save(problem, folder / f"{name}.json")
        specopt.save(specopt.solve(problem), folder / f"{name}-result.json")
    data = json.loads((folder / "serving-result.json").read_text())
    data["plan"]["speculation_length"] = 99
    (folder / "broken.json").write_text(json.dumps(data))
    return folder


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("no-kind --policy x --workload y", ["KIND", "fair-goodput", "'no-kind'"]),
        ("serving-latency --policy x --workload y", ["KIND", "fair-goodput", "'serving-latency'"]),
        (
            "fair-goodput --policy best --workload fixed",
            ["--policy", "robust, gradient", "'best'"],
        ),
        ("fair-goodput --policy robust --workload x", ["--workload", "fixed, random", "'x'"]),
        ("fair-goodput --workload fixed", ["--policy", "robust", "None"]),
        ("fair-goodput --policy robust", ["--workload", "fixed", "None"]),
        (f"{FAIR} --param x=1", ["--param x", "clients"]),
        (f"{FAIR} --param rounds=1.5", ["--param rounds", "an integer", "'1.5'"]),
        (f"{FAIR} --param clients=-1", ["clients", "-1"]),
        (f"{FAIR} --iterations 3", ["iterations", "rounds"]),
        (f"{FAIR} --replications 0", ["replications", "0"]),
        (f"{FAIR} r.json", ["RESULT", "r.json"]),
        ("fair-goodput", ["RESULT", "--policy"]),
        ("serving.json", ["RESULT"]),
        (f"{SERVING} --replications 1", ["replications", "got 1"]),
        (f"{SERVING} --replications many", ["many"]),
        (f"{SERVING} --iterations 3", ["iterations"]),
        ("serving.json broken.json", ["speculation_length"]),
        (f"{CONTROL} --drop-finished", ["drop_finished", "draft-control"]),
        (f"{CONTROL} --iterations 0", ["iterations", "got 0"]),
        (f"{CONTROL} --response-tokens many", ["many"]),
        (ALLOCATION, ["draft-allocation has no simulator"]),
    ],
)
def test_command_refuses(
    cli: CommandLine,
    planned: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    expected: list[str],
) -> None:
    """Tests that bad usage is one clear message with the names that exist, and exit code 2."""
    monkeypatch.chdir(planned)
    cli.refuses(f"simulate {words}", *expected)


def test_a_policy_on_the_tasks_of_a_file(cli: CommandLine) -> None:
    """Tests that a policy serves a problem once, and that asking for more is refused."""
    problem = specopt.generate("continuous-serving/arrivals", tasks=3, max_output=9)
    specopt.save(problem, "problem.json")
    line = "simulate problem.json --policy continuous --param speculation_length=2"
    expected = specopt.simulate(problem, "continuous", speculation_length=2).to_dict()
    assert cli(f"{line} --json").json | {"seconds": 0} == expected | {"seconds": 0}
    assert "over 3 tasks" in cli(line).out
    cli.refuses(f"{line} --replications 7", "with a policy, which is simulated once")


def test_options_of_another_kind_are_refused() -> None:
    """Tests that the front door names the options that the simulator has."""
    problem = specopt.generate("draft-control/paper-3")
    with pytest.raises(
        specopt.InvalidInput,
        match=r"devices: .* has no such option \(got 3\); its options: iterations",
    ):
        specopt.simulate(problem, "llm-alone", devices=3)
    with pytest.raises(specopt.InvalidInput, match="policy"):
        specopt.simulate(problem, None)
