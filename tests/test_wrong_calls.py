# mypy: ignore-errors

"""Wrong calls of the front door: each gets a message rather than an error of Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import specopt


@cache
def allocation() -> specopt.Problem:
    """Return a problem of draft allocation."""
    return specopt.generate("draft-allocation/uniform", clients=3, seed=1)


@cache
def latency() -> specopt.Problem:
    """Return a problem of serving latency."""
    return specopt.generate("serving-latency/paper-1", tasks=4, max_output=20, seed=1)


@cache
def solved(problem: specopt.Problem) -> specopt.Result:
    """Return the result of a problem."""
    return specopt.solve(problem)


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: specopt.solve(3), "problem: expected a specopt problem, got 3"),
    (
        lambda: specopt.solve(allocation(), callback=3),
        "callback: expected a function or None, got 3",
    ),
    (
        lambda: specopt.solve(allocation(), time_limit="1"),
        "time_limit: expected a number of seconds >= 0, or None, got '1'",
    ),
    (
        lambda: specopt.solve(allocation(), time_limit=-1),
        "time_limit: expected a number of seconds >= 0, or None, got -1",
    ),
    (lambda: specopt.solve(allocation(), gap="x"), "gap: expected a finite number >= 0, got 'x'"),
    (lambda: specopt.solve(allocation(), seed=1.5), "seed: expected an integer >= 0, got 1.5"),
    (lambda: specopt.solve(allocation(), workers=0), "workers: expected an integer >= 1, got 0"),
    (
        lambda: specopt.solve(allocation(), memory_limit="1GB"),
        "memory_limit: expected a finite number > 0, got '1GB'",
    ),
    (
        lambda: specopt.solve(allocation(), warm_start=3),
        "warm_start: expected a plan for a draft-allocation problem, got 3",
    ),
    (
        lambda: specopt.solve(allocation(), 3),
        "method: expected a name, a method or a function, got 3",
    ),
    (
        lambda: specopt.solve(allocation(), "greedyy"),
        "method: draft-allocation has no method 'greedyy' (did you me",
    ),
    (
        lambda: specopt.solve(allocation(), "greedy", foo=1),
        "foo: method greedy has no such option; its options: none",
    ),
    (
        lambda: specopt.solve(allocation(), foo=1),
        "foo: solve has no such argument; options require the name ",
    ),
    (
        lambda: specopt.solve([allocation()]),
        "problem: expected a specopt problem, got [DraftAllocationPro",
    ),
    (lambda: specopt.solve("file.json"), "problem: expected a specopt problem, got 'file.json'"),
    (lambda: specopt.front(latency(), "bandwidth_hz", 3), "values: expected a list, got 3"),
    (
        lambda: specopt.front(latency(), "bandwidth", [1e7]),
        "bandwidth: unknown field (did you mean 'bandwidth_hz'?)",
    ),
    (lambda: specopt.front(latency(), 3, [1e7]), "field: expected the name of a field, got 3"),
    (
        lambda: specopt.front(latency(), "bandwidth_hz", ["a"]),
        "bandwidth_hz: expected float, got 'a' (str)",
    ),
    (
        lambda: specopt.front(latency(), "bandwidth_hz", []),
        "values: expected at least one value, got none",
    ),
    (lambda: specopt.front(3, "x", [1]), "problem: expected a specopt problem, got 3"),
    (
        lambda: specopt.compare(["auto"], allocation()),
        "problems: expected a list of problems, got DraftAllocationPr",
    ),
    (lambda: specopt.compare("auto", [allocation()]), "methods: expected a list, got 'auto'"),
    (
        lambda: specopt.compare(["nothing"], [allocation()]),
        "methods: expected one or more of auto, brute-force, greedy, mi",
    ),
    (
        lambda: specopt.compare([3], [allocation()]),
        "methods: expected names, methods or functions, got 3",
    ),
    (lambda: specopt.compare(3, [allocation()]), "methods: expected a list, got 3"),
    (lambda: specopt.compare(["auto"], 3), "problems: expected a list of problems, got 3"),
    (lambda: specopt.compare(["auto"], []), "problems: expected at least one problem, got none"),
    (
        lambda: specopt.compare([], [allocation()]),
        "methods: no method can solve any of the problems",
    ),
    (lambda: specopt.compare(["auto"], ["x"]), "problems[0]: expected a problem, got str"),
    (
        lambda: specopt.compare(["auto"], [allocation()], time_limit="x"),
        "time_limit: expected a finite number >= 0, got 'x'",
    ),
    (lambda: specopt.methods(3), "kind: expected one of serving-latency, continuous-serving, p"),
    (
        lambda: specopt.methods("greedy"),
        "kind: expected one of serving-latency, continuous-serving, p",
    ),
    (
        lambda: specopt.save(3, "/tmp/x.json"),
        "save: expected a problem, result or workload, followed by a ",
    ),
    (
        lambda: specopt.save(allocation(), 3),
        "path: expected a path, got 3",
    ),
    (
        lambda: specopt.save("/tmp/x.json", allocation()),
        "save: expected a problem, result or workload, followed by a ",
    ),
    (lambda: specopt.load(3), "path: expected a path, got 3"),
    (
        lambda: specopt.load("/nothing.json"),
        "/nothing.json: cannot be read (No such file or directory)",
    ),
    (lambda: specopt.load(None), "path: expected a path, got None"),
    (lambda: allocation().evaluate([1, 2]), "plan: expected a DraftAllocationPlan, got [1, 2]"),
    (
        lambda: allocation().evaluate(solved(allocation())),
        "plan: expected a DraftAllocationPlan, got Result(kind='draft",
    ),
    (lambda: allocation().evaluate(None), "plan: expected a DraftAllocationPlan, got None"),
    (lambda: allocation().violations([1, 2]), "plan: expected a DraftAllocationPlan, got [1, 2]"),
    (lambda: allocation().violations(None), "plan: expected a DraftAllocationPlan, got None"),
    (
        lambda: latency().evaluate(solved(allocation()).plan),
        "plan: expected a ServingLatencyPlan, got DraftAllocationPlan",
    ),
    (lambda: latency().plot(3), "plan: expected a plan for a serving-latency problem, got 3"),
    (lambda: specopt.verify(3, 4), "result: expected a result or a plan, got 4"),
    (lambda: specopt.verify(allocation(), 3), "result: expected a result or a plan, got 3"),
    (
        lambda: specopt.verify(solved(allocation()), allocation()),
        "result: expected a result or a plan, got DraftAllocationProb",
    ),
    (
        lambda: specopt.verify(latency(), solved(allocation())),
        "kind: expected 'serving-latency', the kind of the problem, got 'draft",
    ),
    (
        lambda: specopt.generate("draft-allocation/unifrom"),
        "family: expected KIND/FAMILY, for example serving-latency/pa",
    ),
    (lambda: specopt.generate(3), "family: expected KIND/FAMILY, for example serving-latency/pa"),
    (
        lambda: specopt.generate("draft-allocation/uniform", client=3),
        "client: draft-allocation/uniform has no such parameter; its",
    ),
    (
        lambda: specopt.generate("draft-allocation/uniform", clients="x"),
        "clients: expected an integer >= 1, got 'x'",
    ),
    (
        lambda: specopt.generate("draft-allocation/uniform", seed="x"),
        "seed: expected an integer >= 0, got 'x'",
    ),
    (lambda: specopt.families(3), "kind: expected one of serving-latency, continuous-serving, p"),
    (lambda: specopt.families("x"), "kind: expected one of serving-latency, continuous-serving, p"),
    (lambda: specopt.workload(3), "family: expected one of prompt-chunking/specbench, prompt-ch"),
    (
        lambda: specopt.workload("x/y"),
        "family: expected one of prompt-chunking/specbench, prompt-ch",
    ),
    (
        lambda: specopt.simulate(allocation(), 3),
        "simulate: draft-allocation has no simulator; these kinds have one:",
    ),
    (lambda: specopt.compare_policies(3, 4), "policies: expected a list, got 3"),
    (lambda: specopt.sensitivity(3), "problem: expected a specopt problem, got 3"),
    (
        lambda: specopt.sensitivity(allocation(), method=3),
        "method: expected a name, a method or a function, got 3",
    ),
    (lambda: specopt.robustness(allocation(), 3), "result: expected a result or a plan, got 3"),
    (
        lambda: specopt.robustness(3, allocation()),
        "kind: expected one of serving-latency, continuous-serving, p",
    ),
    (lambda: specopt.formulation(3), "problem: expected a specopt problem, got 3"),
    (
        lambda: specopt.plan_of(allocation(), 3),
        "model: expected a formulation of this problem, got 3",
    ),
    (lambda: specopt.to_arrow(3), "table: expected a plan, results, a comparison or a sweep, go"),
    (lambda: specopt.summaries(3), "comparison: expected the result of compare, got 3"),
    (lambda: specopt.paired_tests(3), "comparison: expected the result of compare, got 3"),
    (lambda: specopt.profile_figure(3), "comparison: expected the result of compare, got 3"),
    (
        lambda: specopt.DraftAllocationProblem.from_dict(3),
        "the top level: expected an object, got 3",
    ),
    (lambda: specopt.DraftAllocationProblem.from_dict({}), "format: required field is missing"),
    (
        lambda: specopt.DraftAllocationPlan(draft_tokens="abc"),
        "draft_tokens: expected a list of integers, got 'abc'",
    ),
    (
        lambda: specopt.DraftAllocationPlan(draft_tokens=3),
        "draft_tokens: expected a list of integers, got 3",
    ),
    (lambda: specopt.DraftAllocationPlan.from_dict([]), "plan: expected object, got [] (array)"),
    (
        lambda: specopt.ServingLatencyPlan(batches=3, speculation_length=1, bandwidth_share=[1]),
        "batches: expected array, got 3 (int)",
    ),
    (
        lambda: specopt.ServingLatencyPlan(batches=[3], speculation_length=1, bandwidth_share=[1]),
        "batches[0]: expected array, got 3 (int)",
    ),
    (
        lambda: specopt.ServingLatencyPlan(
            batches=[[0.5]], speculation_length=1, bandwidth_share=[1]
        ),
        "batches[0][0]: expected int, got 0.5 (float)",
    ),
    (
        lambda: specopt.TransitionMatrix(3),
        "rows: expected a square matrix with at least one row, got sh",
    ),
    (
        lambda: specopt.solve(allocation(), "auto", warm_start=solved(latency())),
        "warm_start: expected a plan for a draft-allocation problem, got Servin",
    ),
    (
        lambda: allocation().plot(specopt.solve(latency())),
        "plan: expected a plan for a draft-allocation problem, got ServingLaten",
    ),
    (
        lambda: specopt.solve(allocation(), method=specopt.Method),
        "method: expected a name, a method or a function, got <class ",
    ),
    (
        lambda: specopt.PassTable(batch=[1], new_tokens=[1], seconds=[0.0]),
        "seconds[0]: expected a finite number > 0, got 0.0",
    ),
    (
        lambda: specopt.ClientClass(name="", clients=1, context_tokens=1, acceptance={}),
        "name: expected str of length >= 1, got ''",
    ),
    (
        lambda: specopt.ClientClass(name="a", clients=1, context_tokens=1, acceptance=0.5),
        "acceptance: expected an object, got 0.5",
    ),
    (
        lambda: specopt.RoundClass(probability=2, acceptance_rate=0.5),
        "probability: expected float <= 1.0, got 2",
    ),
    (
        lambda: specopt.generate("serving-latency/paper-1", tasks=0),
        "tasks: expected an integer >= 1, got 0",
    ),
    (
        lambda: specopt.solve(latency(), "exact", size=3),
        "size: method exact has no such option; its options: none",
    ),
    (
        lambda: specopt.solve(latency(), "static-batching", sise=3),
        "sise: method static-batching has no such option (did you mea",
    ),
    (
        lambda: solved(allocation()).plan.from_dict({"draft_token": [1]}),
        "plan.draft_token: unknown field (did you mean 'draft_tokens'",
    ),
    (
        lambda: specopt.front(latency(), "verify.layer", [3]),
        "verify.layer: unknown field (did you mean 'layers'?)",
    ),
    (
        lambda: allocation().plot(solved(allocation())).save("x.bmp"),
        "the picture's format: expected one of png, pdf, svg, got 'bm",
    ),
    (
        lambda: specopt.GoodputWorkload(process="x", budget_tokens=3),
        "rates: expected a list of finite numbers, got 'x'",
    ),
    (
        lambda: specopt.verify(allocation(), [1, 2]),
        "result: expected a result or a plan, got [1, 2]",
    ),
    (
        lambda: specopt.solve(allocation(), workers=1.5),
        "workers: expected an integer >= 1, got 1.5",
    ),
    (
        lambda: specopt.compare(["auto"], [allocation()], shard=(3, 2)),
        "shard: expected i/n with 1 <= i <= n, got 3/2",
    ),
    (
        lambda: specopt.compare(["auto"], [allocation()], seeds=[]),
        "seeds: expected at least one seed, got none",
    ),
    (
        lambda: specopt.compare(["auto"], [allocation()], executor="spark"),
        "executor: expected local, dask://HOST:PORT or ray, got 'spar",
    ),
    (
        lambda: specopt.compare(["auto"], [allocation()], callback=3),
        "callback: expected a function or None, got 3",
    ),
    (
        lambda: specopt.compare(["auto"], [allocation()], gap=-1),
        "gap: expected a finite number >= 0, got -1",
    ),
    (
        lambda: specopt.solve(allocation(), lambda problem: {}),
        "plan.draft_tokens: required field is missing",
    ),
    (
        lambda: specopt.solve(allocation(), lambda problem: {"draft_tokens": [99, 0, 0]}),
        "the plan violates",
    ),
]


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_message(place: int) -> None:
    """Tests that a wrong call raises an exception of specopt whose message says what is wrong."""
    call, fragment = CALLS[place]
    with pytest.raises(specopt.SpecoptError) as caught:
        call()
    assert fragment in str(caught.value)
