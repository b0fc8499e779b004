"""The instance library: what is saved is true, and its problems come out again."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from specopt import InvalidInput, SpecoptError, Status, solve
from specopt.api.generate import FAMILIES
from specopt.api.library import (
    SavedInstance,
    best_known,
    instances_of_kind,
    known_values,
    load_saved,
    saved,
    saved_instance,
)
from specopt.kinds import KINDS

SECOND_ROUTES = [  # exact methods that share no code with the one that proved it
    ("serving-latency/paper-1/K7-68M-7B", "brute-force"),
    ("serving-latency/heavy-prefill/K5", "brute-force"),
    ("verification-batch/correlated/n14-subset-sum", "brute-force"),
    ("verification-batch/bursty/n14", "milp"),
    ("draft-control/deterministic-cycle/S3", "brute-force"),
    ("draft-control/near-tie/S6", "linear-program"),
    ("prompt-chunking/steep-cloud/N14", "brute-force"),
    ("draft-allocation/ties/N4", "brute-force"),
    ("draft-allocation/capped/N5", "milp"),
    ("fair-goodput/paper-5/N3-C5", "enumeration"),
    ("fair-goodput/minimum-rates/N3-C5", "enumeration"),
]
QUICK = [
    "serving-latency/paper-1/K20-1.1B-13B",
    "serving-latency/equal-inputs/K6",
    "serving-latency/slow-link/K40",
    "verification-batch/mixed/n100",
    "verification-batch/hopeless-urgent/n100",
    "verification-batch/density-trap/n100",
    "draft-control/paper-3/low-T1",
    "draft-control/alternating/L0",
    "draft-control/slow-mixing/S10",
    "prompt-chunking/paper-4/N14",
    "prompt-chunking/paper-4/N8000",
    "draft-allocation/uniform/N100",
    "draft-allocation/one-dominates/N8-1e-6",
    "fair-goodput/paper-5/N8-C20-extreme",
    "fair-goodput/per-second/N8-C20",
]


def test_it_is_small() -> None:
    """Tests that all files together stay small."""
    folder = files("specopt.instances.data.library")
    assert sum(len((folder / f"{kind.name}.jsonl").read_bytes()) for kind in KINDS) < 1_500_000


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_recipes_give_the_saved_numbers(kind: str) -> None:
    """Tests that every recipe still gives the problem whose digest is saved, and the saved problem
    is that one.
    """
    for instance in instances_of_kind(kind).values():
        problem = instance.generate()
        assert problem.sha256 == instance.problem_sha256, instance.name
        if instance.problem is not None:
            notes = {} if instance.source is None else {"notes": instance.source}
            assert instance.load() == type(problem).from_dict(
                {**problem.to_dict(), **notes, "name": instance.name}
            )


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_best_known_values_are_consistent(kind: str) -> None:
    """Tests that saved plans are feasible and worth what is said, bounds hold, and statuses are
    what they prove.
    """
    for instance in instances_of_kind(kind).values():
        best, problem = instance.best, instance.load()
        plan = instance.plan()
        if plan is not None:
            assert problem.violations(plan) == [], instance.name
            assert problem.evaluate(plan).objective == pytest.approx(
                best.objective, rel=1e-12, abs=1e-12
            )
        assert (best.bound is None) == (best.gap is None) == (best.bound_method is None)
        if best.bound is not None:
            beyond = (
                best.bound - best.objective
                if problem.sense == "minimize"
                else best.objective - best.bound
            )
            assert beyond <= 0.0 or problem.gap(best.objective, best.bound) <= 1e-9, instance.name
            proven = problem.gap(best.objective, best.bound) <= 1e-9
            assert best.status == ("optimal" if proven else "feasible")
            assert best.gap == (
                0.0 if proven else pytest.approx(problem.gap(best.objective, best.bound))
            )
        else:
            assert best.status == "feasible"


@pytest.mark.parametrize(
    "kind",
    [
        one.name
        for one in KINDS
        if any(instance.source is None for instance in instances_of_kind(one.name).values())
    ],
)
def test_much_of_it_is_proven(kind: str) -> None:
    """Tests that most generated instances are proven optimal, the small ones all, and several by
    two methods.
    """
    instances = [
        instance for instance in instances_of_kind(kind).values() if instance.source is None
    ]
    assert sum(instance.best.status == "optimal" for instance in instances) >= 0.6 * len(instances)
    assert all(
        instance.best.status == "optimal" for instance in instances if instance.size == "small"
    )
    assert sum(bool(instance.best.confirmed_by) for instance in instances) >= 7


@pytest.mark.parametrize("name", QUICK)
def test_the_default_method_reaches_the_best_known(name: str) -> None:
    """Tests that solving again gives the saved optimum, proven."""
    best, result = best_known(name), solve(load_saved(name))
    assert best.status == "optimal" and result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(best.objective, rel=2e-9, abs=2e-9)


@pytest.mark.parametrize(("name", "method"), SECOND_ROUTES)
def test_a_second_method_agrees(name: str, method: str) -> None:
    """Tests that a method which shares no code with the first gives the saved optimum."""
    best = best_known(name)
    result = solve(load_saved(name), method)
    assert best.method != method and best.bound_method != method
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-6)


def test_algorithm_1_fails_where_it_is_said_to() -> None:
    """Tests that the families made against the papers' algorithms do what they are for."""
    for name, least in (("heavy-prefill/K8", 1.05), ("tight-memory/K20-fit2", 1.02)):
        name = f"serving-latency/{name}"
        objective = solve(load_saved(name), "algorithm-1").objective
        assert objective is not None and objective > least * best_known(name).objective
    stopped = solve(load_saved("verification-batch/hopeless-urgent/n100"), "algorithm-1")
    assert stopped.objective == 0.0
    trapped = solve(
        load_saved("verification-batch/density-trap/n100"), "algorithm-1-drop"
    ).objective
    assert (
        trapped is not None
        and trapped < 0.05 * best_known("verification-batch/density-trap/n100").objective
    )
    myopic = solve(load_saved("draft-control/alternating/L1"), "myopic").objective
    assert (
        myopic is not None and myopic < 0.95 * best_known("draft-control/alternating/L1").objective
    )


def test_names() -> None:
    """Tests that every instance belongs to a family, and is listed by kind."""
    assert {
        saved_instance(name).family for name in saved() if saved_instance(name).source is None
    } <= set(FAMILIES)
    assert saved("fair-goodput") == list(instances_of_kind("fair-goodput"))


def test_known_values() -> None:
    """Tests that a problem finds its best known value by its digest."""
    name = "verification-batch/mixed/n100"
    assert known_values()[load_saved(name).sha256] == (
        best_known(name).objective,
        best_known(name).bound,
    )


def test_recipes_alone_and_kinds_without_a_file_are_not_saved_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a line with a recipe alone is passed over, as a kind without lines is."""
    data = files("specopt.instances.data.library") / "draft-allocation.jsonl"
    line = data.read_text().partition("\n")[0]
    alone = {
        key: value
        for key, value in json.loads(line).items()
        if key in ("name", "size", "seed", "parameters")
    }
    (tmp_path / "draft-allocation.jsonl").write_text(
        json.dumps(alone | {"name": "a/b/c"}) + "\n" + line
    )
    monkeypatch.setattr("specopt.api.library.files", lambda _: tmp_path)
    assert list(instances_of_kind.__wrapped__("draft-allocation")) == [json.loads(line)["name"]]
    assert instances_of_kind.__wrapped__("fair-goodput") == {}


@pytest.mark.parametrize("name", ["K7", "serving-latency/K7", "elsewhere/K7", ""])
def test_unknown_names(name: str) -> None:
    """Tests that a wrong name lists the right ones."""
    with pytest.raises(
        InvalidInput, match=r"name: expected one of serving-latency/paper-1/K7-68M-7B, .*, got '"
    ):
        load_saved(name)


def test_changed_numbers_are_noticed() -> None:
    """Tests that a recipe which gives other numbers than it did is refused."""
    instance = saved_instance("draft-allocation/uniform/N10000")
    assert instance.problem is None
    other = SavedInstance(
        name=instance.name,
        size=instance.size,
        seed=instance.seed + 1,
        parameters=instance.parameters,
        problem_sha256=instance.problem_sha256,
        best=instance.best,
    )
    with pytest.raises(
        SpecoptError, match="draft-allocation/uniform/N10000: the numbers are not those"
    ):
        other.load()
