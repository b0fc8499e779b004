"""`specopt plan` for `placement`: where to draft, from two configs, measured passes and a link."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import CommandLine

import specopt
from specopt.api import placing
from specopt.instances.placement.one_unit import Figure, best_length, everywhere
from specopt.instances.placement.parts import spread
from specopt.models.named import NamedTrips
from specopt.models.placement.problem import PlacementProblem

pytestmark = pytest.mark.usefixtures("own_clock")

SHIPPED = files("specopt.instances") / "data" / "measured"
MODELS = (
    f"--draft={SHIPPED / 'draft-15m.config.json'} --verify={SHIPPED / 'verify-100m.config.json'}"
)
HAVE = f"{MODELS} --runtimes {SHIPPED / 'cpu-pair.csv'}"
LINES = {
    "draft": {"seconds_per_token": 1e-4, "overhead_seconds": 0.001},
    "verify": {"seconds_per_token": 1e-4, "overhead_seconds": 0.04},
}


@pytest.fixture
def simple(tmp_path: Path) -> str:
    """Return both models with passes that are lines, without limits."""
    path = tmp_path / "lines.json"
    path.write_text(json.dumps(LINES))
    return f"{MODELS} --runtimes {path} --for placement --time-limit 20"


@pytest.fixture
def no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out where the verdict turns, which takes most of a plan's time."""
    monkeypatch.setattr(placing, "_turns", lambda *_: ())


def planned(cli: CommandLine, line: str) -> dict[str, Any]:
    """Return what the command says in JSON."""
    data: dict[str, Any] = cli(f"plan {line} --json").json
    return data


def values_of(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the values that a plan rests on, by name."""
    return {one["name"]: one for one in data["values"]}


def test_from_what_a_user_has_to_a_judged_plan(
    simple: str, tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that problem and plan are written, the judge takes them, and every place has what it
    yields alone.
    """
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    given = f"{simple} --link 100,20 --clients 90 --tpot 50"
    data = planned(cli, f"{given} --problem {problem} -o {result}")
    cli(f"evaluate {problem} {result}")
    found = specopt.load(problem)
    assert isinstance(found, PlacementProblem)
    (verifier,), (of,), (drafter,) = found.verifiers, found.classes, found.drafters
    assert found.objective == "cost" and verifier.price_per_second == 1.0
    assert (of.clients, of.min_tokens_per_second) == (90, 20.0)
    assert verifier.passes.dump() == [
        {
            "overhead_seconds": 0.04,
            "seconds_per_sequence": 0.0,
            "seconds_per_token": 1e-4,
            "seconds_per_cached_token": 0.0,
        }
    ]
    assert of.round_trip_seconds is not None and of.device_seconds_per_token is not None
    assert of.round_trip_seconds.values[verifier.name] == pytest.approx(spread(0.02))
    assert of.device_seconds_per_token.values[drafter.name] == pytest.approx(0.0011)
    assert of.uplink_bits_per_second == 1e8 and found.bits_per_draft_token == 15
    places = {one["place"]: one for one in data["advice"]["places"]}
    # one unit without drafts keeps 20 tokens per second with 1 / (0.04 + 1e-4 b) >= 20: 100 clients
    assert set(places) == {"none", "beside", "device"} and places["none"]["value"] == 100
    assert data["advice"]["places"][0]["value"] == max(one["value"] for one in places.values())
    assert all(one["band"] is None for one in places.values())
    assert "clients per unit at 50 ms per token" in data["advice"]["lines"][0]
    assert (
        "90 clients need" in data["advice"]["lines"][-1]
        and "proven minimal" in data["advice"]["lines"][-1]
    )


@pytest.mark.nightly
def test_break_evens_are_where_the_verdict_turns(simple: str, cli: CommandLine) -> None:
    """Tests that devices carry more than any other place just below the break-even round trip, and
    not above it.
    """
    data = planned(cli, f"{simple} --link 100,20 --clients 30 --tpot 50")
    trip = data["advice"]["break_even"]["round_trip_seconds"]
    assert 1e-3 < trip < 1.0
    problem = PlacementProblem.from_dict(data["problem"])
    (of,), (verifier,) = problem.classes, problem.verifiers

    def devices(mean: float) -> float:
        trips = NamedTrips({verifier.name: spread(mean)})
        near = dataclasses.replace(
            problem, classes=(dataclasses.replace(of, round_trip_seconds=trips),)
        )
        return best_length(near, "device").value

    others = max(one["value"] for one in data["advice"]["places"] if one["place"] != "device")
    assert devices(trip) > others >= devices(trip * 1.06)


COLUMNS = "model,batch,new_tokens,cached_tokens,seconds_median\n"
STAIRS = {1: 0.0517, 2: 0.104, 3: 0.105, 4: 0.106, 5: 0.107, 6: 0.108, 8: 0.11, 9: 0.111}
"""Seconds of a pass by new tokens, as on kernels for one token and for several: lines miss them."""


def staircase(tmp_path: Path, noise: float = 0.0) -> str:
    """Return both models with measured passes of one request, the verify model's a staircase."""
    path = tmp_path / "stairs.csv"
    rows = [f"draft-15m,1,{new},128,{0.03 + 0.0001 * new}\n" for new in STAIRS]
    rows += [
        f"verify-100m,1,{new},128,{seconds * (1.0 + sign * noise)}\n"
        for new, seconds in STAIRS.items()
        for sign in (-1, 1)
    ]
    path.write_text(COLUMNS + "".join(rows))
    return f"{MODELS} --runtimes {path} --for placement --clients 1"


@pytest.mark.usefixtures("no_turns")
def test_a_staircase_of_passes_reverses_no_verdict(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that places have the tokens per second of the measured passes, not of lines fitted to
    them, and that headline and plan agree with these.
    """
    data = planned(cli, f"{staircase(tmp_path)} --link 100,20 --time-limit 10")
    places = {one["place"]: one for one in data["advice"]["places"]}
    assert places["none"]["value"] == pytest.approx(1.0 / STAIRS[1])
    rates = {
        tokens: sum(0.8**k for k in range(tokens + 1)) / (STAIRS[tokens + 1] + tokens * 0.0301)
        for tokens in (1, 2, 3, 4, 5, 7, 8)
    }
    assert places["beside"]["value"] == pytest.approx(max(rates.values()))
    assert rates[places["beside"]["draft_tokens"]] == max(rates.values()) < 1.0 / STAIRS[1]
    assert data["advice"]["lines"][0].startswith("Do not draft: 19.34")
    ((group,),) = [data["result"]["plan"]["groups"]]
    assert [one["place"] for one in group["clients"]] == ["none"]
    assert data["result"]["objective"] == pytest.approx(1.0 / STAIRS[1], rel=1e-6)


@pytest.mark.usefixtures("no_turns")
def test_bands_that_overlap_are_too_close_to_call(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that a verdict within the noise of the passes is none, and that the passes to measure
    are named.
    """
    data = planned(cli, f"{staircase(tmp_path, 0.3)} --link 100,20 --time-limit 10")
    line = data["advice"]["lines"][0]
    assert line.startswith("Too close to call; measure acceptance and passes of 1 sequences with 1")
    (none,) = (one for one in data["advice"]["places"] if one["place"] == "none")
    assert none["band"][0] <= 1.0 / STAIRS[1] / 1.2 and none["band"][1] >= 1.0 / STAIRS[1] * 1.2


@pytest.mark.usefixtures("no_turns")
def test_a_plan_without_time_for_the_solver(simple: str, cli: CommandLine) -> None:
    """Tests that the best place for all is the plan where the solver had no time for any, without a
    bound and without words that there is none.
    """
    need = "--link 100,20 --clients 30 --tpot 50 --time-limit 0"
    data = planned(cli, f"{simple} {need}")
    result = data["result"]
    assert result["status"] == "feasible" and result["plan"]["groups"]
    assert result["explanation"] is None
    assert data["judged"]["feasible"]


@pytest.mark.usefixtures("no_turns")
def test_ties_go_to_fewer_watts_and_then_to_balance(simple: str, cli: CommandLine) -> None:
    """Tests that of plans with as few units the written one has the fewest watts, its units serve
    alike, and the headline says what it does.
    """
    need = "--link 100,20 --clients 31 --tpot 50 --power 100,300,5"
    data = planned(cli, f"{simple} {need} --price 1")
    served = {one["place"] for of in data["result"]["plan"]["groups"] for one in of["clients"]}
    first = data["advice"]["places"][0]
    assert served == {first["place"]}
    line = data["advice"]["lines"][0]
    assert line.startswith("Do not draft" if served == {"none"} else "Draft ")
    watts = {}
    for place in data["advice"]["places"]:
        option = Figure(place["place"], 0.0, place["draft_tokens"], place["overlap"])
        problem = PlacementProblem.from_dict(data["problem"])
        plan = everywhere(problem, option, 31)
        if not problem.violations(plan):
            watts[option.place] = problem.evaluate(plan).terms["watts"]
    assert data["result"]["terms"]["watts"] <= min(watts.values()) * (1.0 + 1e-9)
    data = planned(cli, f"{simple} --link 100,20 --clients 205 --tpot 50")
    sizes = [
        sum(one["per_unit"] for one in group["clients"])
        for group in data["result"]["plan"]["groups"]
    ]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.nightly
@pytest.mark.usefixtures("no_turns")
def test_what_nobody_gave_is_assumed_and_asked_for(simple: str, cli: CommandLine) -> None:
    """Tests that defaults are named too, each with a way to measure it, and that what is given is
    known.
    """
    data = planned(cli, f"{simple}")
    assumed = {name for name, one in values_of(data).items() if one["assumed"]}
    asked = {text.partition(":")[0] for text in data["measure_next"]}
    measurable = {
        "classes.acceptance",
        "classes.device_seconds_per_token",
        "classes.round_trip_seconds",
        "classes.clients",
        "classes.min_tokens_per_second",
        "classes.context_tokens",
        "verifiers.memory_bytes",
        "verifiers.reserved_share",
    }
    assert measurable <= assumed and measurable <= asked
    more = "--link 100,20 --clients 9 --tpot 50 --memory 2 --set verifiers.reserved_share=0.1"
    data = planned(cli, f"{simple} {more}")
    known = values_of(data)
    assert known["verifiers.reserved_share"]["source"] == "--set"
    assert data["problem"]["verifiers"][0]["reserved_share"] == 0.1
    for name in (
        "classes.round_trip_seconds",
        "classes.clients",
        "classes.min_tokens_per_second",
        "verifiers.memory_bytes",
        "verifiers.reserved_share",
    ):
        assert not known[name]["assumed"] and not [
            text for text in data["measure_next"] if text.startswith(name)
        ]


def test_acceptance_by_position_bands_and_devices(
    simple: str, tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that limits of acceptance become bands around what they belong to, and devices have
    their own passes.
    """
    rates = tmp_path / "rates.json"
    device = tmp_path / "device.json"
    rates.write_text(
        '{"acceptance_rates": [0.8, 0.7, 0.6], "lower": [0.6, 0.5, 0.4], "upper": [0.9, 0.9, 0.8]}'
    )
    device.write_text('{"draft": {"seconds_per_token": 0.03, "overhead_seconds": 0}}')
    given = f"--link 100,20 --clients 9 --tpot 50 --acceptance {rates}"
    data = planned(cli, f"{simple} {given} --device-runtimes {device}")
    (of,) = data["problem"]["classes"]
    assert (
        of["acceptance"] == {"draft-15m": [0.8, 0.7, 0.6]}
        and data["problem"]["max_draft_tokens"] == 3
    )
    assert of["device_seconds_per_token"] == {"draft-15m": pytest.approx(0.03)}
    for one in data["advice"]["places"]:
        low, high = one["band"]
        assert low <= one["value"] <= high and (low < high) == (one["place"] != "none")


@pytest.mark.nightly
@pytest.mark.usefixtures("no_turns")
def test_money_and_power(simple: str, cli: CommandLine) -> None:
    """Tests that prices of an hour and watts reach the problem, and a price of servers offers
    these.
    """
    need = f"{simple} --time-limit 3 --link 100,20 --clients 200 --tpot 50"
    data = planned(cli, f"{need} --price 3.6,1.8 --power 100,300,5")
    problem, terms = data["problem"], data["result"]["terms"]
    assert problem["objective"] == "cost" and problem["verifiers"][0][
        "price_per_second"
    ] == pytest.approx(0.001)
    assert problem["draft_pools"][0]["price_per_second"] == pytest.approx(0.0005)
    assert problem["classes"][0]["device_watts"] == 5.0
    assert "pool" in {one["place"] for one in data["advice"]["places"]}
    assert f"{3600 * terms['price_per_second']:.4g} per hour" in data["advice"]["lines"][-1]
    assert f"{terms['watts']:.4g} W" in data["advice"]["lines"][-1]
    data = planned(cli, f"{need} --power 100,300")
    assert data["problem"]["objective"] == "energy" and "draft_pools" not in data["problem"]
    assert data["result"]["objective"] == pytest.approx(data["result"]["terms"]["watts"])


@pytest.mark.nightly
def test_an_engine_hears_what_the_link_decides(simple: str, cli: CommandLine) -> None:
    """Tests that a link is not ignored for an engine on one machine: places and break-evens are
    said.
    """
    given = f"{simple} --for vllm --link 100,20 --clients 20"
    data = planned(cli, given)
    assert data["unused"] == []
    assert "tokens/s for each of 20 clients" in data["link"][0] and "round trip" in data["link"][1]
    text = cli(f"plan {given}").out
    assert "Not used: --link" not in text and data["link"][1] in text


@pytest.mark.nightly
@pytest.mark.usefixtures("no_turns")
def test_beyond_what_was_measured_is_said(cli: CommandLine) -> None:
    """Tests that a table of batches up to 4 says that 30 clients are beyond it, and how far its fit
    is off.
    """
    data = planned(
        cli,
        f"{HAVE} --for placement --link 100,20 --clients 30 --time-limit 8",
    )
    assert (
        data["measure_next"][0].startswith("passes of ")
        and "batches 1-4" in data["measure_next"][0]
    )
    assert "passes differ by -" in values_of(data)["verifiers.passes"]["source"]


def test_a_page_for_people(simple: str, cli: CommandLine) -> None:
    """Tests that assumptions come first, then the answer, the plan, and what to measure."""
    text = cli(f"plan {simple} --link 100,20 --clients 30 --tpot 50").out
    order = [
        "values are assumed",
        "clients per unit at 50 ms",
        "mean round trip",
        "judged",
        "Measure next",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_nobody_can_be_served(simple: str, cli: CommandLine) -> None:
    """Tests that a latency that no place keeps is infeasible, and said in words."""
    assert (
        "No place meets 1 ms per token"
        in cli(f"plan {simple} --link 100,20 --clients 30 --tpot 1", 1).out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--clients 0", "--clients: expected an integer >= 1"),
        ("--tpot 0", "--tpot: expected"),
        (
            "--tpot 50 --price cheap",
            "--price: expected VERIFIER[,POOL], all numbers >= 0, got 'cheap'",
        ),
        ("--tpot 50 --price 1,2,3", "--price: expected VERIFIER[,POOL]"),
        ("--tpot 50 --price nan", "--price: expected VERIFIER[,POOL]"),
        ("--tpot 50 --price 0", "verifiers[0].price_per_second: expected a number > 0"),
        ("--tpot 50 --power 100", "--power: expected IDLE,BUSY[,DEVICE]"),
        ("--tpot 50 --power 300,100", "busy_watts: expected at least idle_watts"),
        ("--price 1", "--price: expected --tpot MS as well"),
        ("--power 1,2", "--power: expected --tpot MS as well"),
        ("--memory 0.1", "--memory: expected more than "),
        ("--link 100,90000", "are the values in milliseconds?"),
        (f"--device-runtimes {SHIPPED / 'draft-15m.config.json'}", "draft"),
    ],
)
def test_bad_input_is_one_line(arguments: str, message: str, simple: str, cli: CommandLine) -> None:
    """Tests that what cannot be planned exits with 2 and says what was expected."""
    said = cli(f"plan {simple} {arguments}", 2).err
    assert message in said and said.count("\n") == 1


@pytest.mark.parametrize("target", ["fair-goodput", "vllm"])
def test_fleets_are_for_placement(target: str, cli: CommandLine) -> None:
    """Tests that another kind, or an engine without a link, does not swallow what only placement
    uses.
    """
    assert (
        "--clients: expected --for placement, or an engine with --link"
        in cli(f"plan {HAVE} --for {target} --clients 3", 2).err
    )


def test_the_front_of_cost_against_the_least_rate(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that one least rate for all classes is varied, certified, with watts beside cost in
    table and picture.
    """
    problem = tmp_path / "problem.json"
    picture = tmp_path / "front.svg"
    specopt.save(
        specopt.generate(
            "placement/edge-cloud", number_of_clients=12, objective="cost", pool_units=0
        ),
        problem,
    )
    given = f"front {problem} --field classes.min_tokens_per_second --values 5,10"
    text = cli(f"{given} --time-limit 30 -o {picture}").out
    assert "price per second" in text and "watts" in text
    assert "Watts of these plans" in picture.read_text()
    points = cli(f"{given} --time-limit 30 --json").json["points"]
    for point in points:
        assert (
            point["objective"] == point["terms"]["price_per_second"] and point["bound"] is not None
        )
        rates = [
            row["tokens_per_second"] for rows in point["terms"]["classes"].values() for row in rows
        ]
        assert min(rates) >= point["value"] * (1.0 - 1e-9)
    assert np.diff([point["objective"] for point in points]) >= 0.0
