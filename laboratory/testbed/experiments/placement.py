"""Places to draft, for one client and for several, over links with several round trips.

The plans have no drafts, drafts beside the verifier, on devices, or on devices that draft ahead,
each with every draft length. All clients draft in the same way. The judge's best plan is the
model's choice (`testbed.studies.places`). All plans are played, so that the best place is known.
Plans without devices do not depend on the trip and are played once. A scene is a number of clients
and a mean round trip. Trips are drawn from the 20 quantiles of the problem.

The inputs of predictions come from prompts that are not played: passes of the unit and its overhead
around them, seconds of drafting, and acceptance by position. One client is served until each prompt
has the same number of tokens. With several clients, each prompt has about the same number of
rounds. Acceptance is weighted accordingly.

The speed of the machine drifts. Before each play, a few rounds of a known prompt run beside the
verifier. `model` scales all times by the ratio of these measurements to the predicted ones. It
therefore predicts after the plays, although nothing is fitted to them. `belief` does not scale
times.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from specopt.instances.deployment.pieces import fit_lines
from specopt.instances.placement.parts import spread
from specopt.models.errors import InvalidInput
from specopt.models.fields import parse
from specopt.models.named import NamedPasses, NamedRates, NamedSeconds, NamedTrips
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement.plan import Beside, PlacementPlan, Served, UnitGroup
from specopt.models.placement.problem import ClientClass, Drafter, PlacementProblem, Verifier
from testbed.decoding import differences
from testbed.pairs import draw_prompts
from testbed.plays.placement import Recorded, Way, play
from testbed.processes import Laboratory
from testbed.records import Keep

KIND = PlacementProblem.kind
OURS, RIVALS = "", ()
"""No plan is assigned to a method."""

UNIT, DRAFT, CLIENTS = "unit", "draft", "clients"

KNOWN_TRIP = 0.03
"""Mean round trip with which passes with the drafts of devices are measured, so that clients arrive
one by one.
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the plays.

    Parameters
    ----------
    round_trip_seconds
        Mean round trips, each of which is a scene for every number of clients.
    clients
        Numbers of clients.
    draft_tokens
        Draft lengths.
    prompts
        Number of prompts of each repetition. Repetitions have different prompts, and all scenes
        have the same.
    tokens_alone, tokens
        Tokens of each prompt with one client, and with several.
    known_prompts, known_tokens
        Prompts that determine acceptance and drafting times, and the tokens of each.
    known_clients
        Batch sizes of the measured passes, with the first `prompts` of these prompts.
    repeats
        Number of plays of each plan.
    seed
        Seed of all random numbers.
    """

    round_trip_seconds: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3)
    clients: tuple[int, ...] = (1, 4)
    draft_tokens: tuple[int, ...] = (1, 3, 5)
    prompts: int = 8
    tokens_alone: int = 8
    tokens: int = 16
    known_prompts: int = 32
    known_tokens: int = 10
    known_clients: tuple[int, ...] = (1, 2, 4)
    repeats: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name, prompts in (("prompts", self.prompts), ("known_prompts", self.known_prompts)):
            if any(prompts % count for count in {*self.clients, *self.known_clients}):
                raise InvalidInput(
                    f"{name}: expected a multiple of every number of clients, got {prompts}"
                )


TINY = Settings(
    round_trip_seconds=(0.0, 0.03),
    clients=(1, 2),
    draft_tokens=(1, 3),
    prompts=2,
    tokens_alone=6,
    tokens=6,
    known_prompts=4,
    known_tokens=6,
    known_clients=(1, 2),
)
"""Settings for tests, which are played in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Measure the inputs of predictions, record the devices that are replayed, and record problems
    and plans.
    """
    known = draw_prompts(laboratory.pair, settings.known_prompts, played=False, seed=settings.seed)
    prompts = draw_prompts(
        laboratory.pair, settings.repeats * settings.prompts, played=True, seed=settings.seed
    )
    devices = keep("devices", lambda: rehearse(laboratory, settings, known, settings.known_tokens))
    scenes = list(product(settings.clients, settings.round_trip_seconds))
    longest = max(settings.tokens, settings.tokens_alone) + max(settings.draft_tokens) + 1
    data: dict[str, Any] = {
        "models": {
            worker.side: worker.config.name for worker in (laboratory.draft, laboratory.verify)
        },
        "prompts": prompts,
        "alone": [laboratory.verify.greedy(prompt, longest) for prompt in prompts],
        "passes": keep(
            "passes", lambda: measure_unit(laboratory, settings, known[: settings.prompts], devices)
        ),
        "replayed": keep(
            "replayed", lambda: rehearse(laboratory, settings, prompts, settings.tokens)
        ),
        "context_tokens": int(np.mean([len(prompt) for prompt in known]))
        + settings.known_tokens // 2,
        "devices": devices,
        "problems": [],
        "trials": [],
    }
    for scene, (clients, trip) in enumerate(scenes):
        problem = problem_of(data, settings, clients, trip)
        data["problems"].append(problem.to_dict())
        for label, way in ways(settings).items():
            if way.place != "device" and trip != settings.round_trip_seconds[0]:
                continue
            plan = plan_of(way, clients)
            trial = {
                "scene": scene,
                "label": "places",
                "problem": scene,
                "methods": [label],
                "way": asdict(way),
            }
            trial |= {"clients": clients, "round_trip_seconds": trip, "plan": plan.to_dict()}
            predicted = {"belief": {"tokens_per_second": problem.evaluate(plan).objective}}
            data["trials"].append({**trial, "predicted": predicted, "measured": []})
    return data


def conclude(data: dict[str, Any]) -> None:
    """Predict every plan at the speed of the machine between the plays."""
    settings, factor = parse(Settings, data["settings"], "settings"), pace(data)
    data["predicted_after_the_plays"] = ["model"]
    for trial in data["trials"]:
        problem = problem_of(data, settings, trial["clients"], trial["round_trip_seconds"], factor)
        plan = PlacementPlan.from_dict(trial["plan"])
        trial["predicted"]["model"] = {"tokens_per_second": problem.evaluate(plan).objective}


def pace(data: dict[str, Any]) -> float:
    """Return the ratio of the measured seconds of the passes between the plays to their prediction
    from the passes measured before.
    """
    verify, beside = pieces_of(data["passes"], 1)
    took = said = 0.0
    for trial in data["trials"]:
        for measured in trial["measured"]:
            for _, batch, new, cached, seconds, _ in measured["pace"]:
                took += seconds
                said += verify.at(batch, new, cached) + (new / batch - 1) * beside.at(
                    batch, batch, cached
                )
    return took / said


def ways(settings: Settings) -> dict[str, Way]:
    """Return every place and draft length, by a name that begins with that of the place."""
    found = {"none": Way(place="none")}
    for name, place, overlap in (
        ("beside", "beside", False),
        ("device", "device", False),
        ("overlapped", "device", True),
    ):
        for length in settings.draft_tokens:
            found[f"{name}-{length}"] = Way(place=place, draft_tokens=length, overlap=overlap)
    return found


def plan_of(way: Way, clients: int) -> PlacementPlan:
    """Return the plan of one unit whose clients all draft in one way."""
    device: dict[str, Any] = {
        "drafter": DRAFT,
        "draft_tokens": way.draft_tokens,
        "overlap": way.overlap,
    }
    place: Any = way.place
    served = Served(
        class_=CLIENTS, per_unit=clients, place=place, **(device if way.place == "device" else {})
    )
    beside = Beside(drafter=DRAFT, draft_tokens=way.draft_tokens) if way.place == "beside" else None
    return PlacementPlan(
        groups=(UnitGroup(verifier=UNIT, units=1, clients=(served,), beside=beside),)
    )


def problem_of(
    data: dict[str, Any], settings: Settings, clients: int, trip: float, factor: float = 1.0
) -> PlacementProblem:
    """Return the problem of a scene from the measurements, with all times scaled by a factor.
    Memory is ample.
    """
    most = max(settings.draft_tokens)
    verify, beside = (one.scaled(factor) for one in pieces_of(data["passes"], clients))
    rounds = [one for device in data["devices"] for of in device["rounds"] for one in of]
    drafting = (
        factor
        * sum(one["draft_seconds"] for one in rounds)
        / sum(len(one["tokens"]) for one in rounds)
    )
    return PlacementProblem(
        verifiers=(
            Verifier(
                name=UNIT,
                units=1,
                memory_bytes=1e15,
                weights_bytes=0.0,
                kv_bytes_per_token=1.0,
                passes=verify,
            ),
        ),
        drafters=(
            Drafter(
                name=DRAFT,
                weights_bytes=0.0,
                kv_bytes_per_token=0.0,
                beside=NamedPasses({UNIT: beside}),
            ),
        ),
        classes=(
            ClientClass(
                name=CLIENTS,
                clients=clients,
                context_tokens=data["context_tokens"],
                acceptance=NamedRates(
                    {DRAFT: np.array(by_position(data["devices"], most, alike=clients > 1))}
                ),
                device_seconds_per_token=NamedSeconds({DRAFT: drafting}),
                round_trip_seconds=NamedTrips({UNIT: spread(trip)}),
            ),
        ),
        max_draft_tokens=most,
        bits_per_draft_token=0.0,
        objective="goodput",
    )


def pieces_of(passes: list[dict[str, Any]], clients: int) -> tuple[PassPieces, PassPieces]:
    """Return the times of passes of the unit, and of the drafter beside it, by their sequences and
    new tokens.

    A line fits passes either of few sequences or of many. Passes of more sequences than there are
    clients are therefore excluded. Every batch and draft length has the same weight, by its mean.
    Contexts hardly differ and are ignored.
    """
    cells: dict[tuple[float, int, bool], list[tuple[float, float, float]]] = {}
    for one in passes:
        for _, batch, new, _, seconds, drafting in one["passes"]:
            if batch <= clients:
                cell = cells.setdefault((batch, one["draft_tokens"], drafting > 0.0), [])
                cell.append((new, seconds - drafting, drafting))
    rows = [(*key, *np.mean(times, axis=0)) for key, times in cells.items()]

    def fitted(table: list[tuple[float, ...]]) -> PassPieces:
        work = np.array(table)
        return PassPieces(fit_lines(work[:, :4], work[:, 4]))

    return (
        fitted([(1.0, batch, new, 0.0, seconds) for batch, _, _, new, seconds, _ in rows]),
        fitted(
            [
                (1.0, batch, batch, 0.0, drafting / n)
                for batch, n, beside, _, _, drafting in rows
                if beside
            ]
        ),
    )


def by_position(devices: list[dict[str, Any]], most: int, *, alike: bool) -> list[float]:
    """Return the share of accepted drafts at each position whose earlier drafts were accepted. The
    guess after the drafts is an additional position.

    Parameters
    ----------
    devices
        Rounds of rehearsals, by draft length.
    most
        Number of positions, without the guess.
    alike
        Whether each prompt has the same weight. Otherwise each round has.
    """
    accepted, looked = np.zeros(most + 1), np.zeros(most + 1)
    for device in devices:
        for counts, rounds in zip(device["accepted"], device["rounds"], strict=True):
            weight = 1.0 / len(counts) if alike else 1.0
            for count, one in zip(
                counts, rounds, strict=False
            ):  # the last drafts were not verified
                looked[: count + 1] += weight
                accepted[: count + one["hit"]] += weight
    return [float(a / b) if b else 0.0 for a, b in zip(accepted, looked, strict=True)]


def measure_unit(
    laboratory: Laboratory,
    settings: Settings,
    prompts: list[list[int]],
    devices: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the passes of a unit without drafts, with drafts beside it, and with drafts of
    devices, by draft length.
    """
    found = []
    for length, clients in product((0, *settings.draft_tokens), settings.known_clients):
        told: dict[str, Any] = {"tokens": settings.known_tokens, "clients": clients}
        way = Way(place="beside" if length else "none", draft_tokens=length)
        found.append(
            {
                "draft_tokens": length,
                "passes": play(laboratory, way, prompts, trips=(0.0,), **told).passes,
            }
        )
        if length:
            way, own = (
                Way(place="device", draft_tokens=length),
                recorded(devices, length)[: len(prompts)],
            )
            run = play(
                laboratory, way, prompts, trips=spread(KNOWN_TRIP).tolist(), replayed=own, **told
            )
            found.append({"draft_tokens": length, "passes": run.passes})
    return found


def recorded(devices: list[dict[str, Any]], length: int) -> list[Recorded]:
    """Return the rounds of devices with drafts of a given length, by prompt."""
    found: list[Recorded] = next(one["rounds"] for one in devices if one["draft_tokens"] == length)
    return found


def rehearse(
    laboratory: Laboratory, settings: Settings, prompts: list[list[int]], tokens: int
) -> list[dict[str, Any]]:
    """Return the rounds of devices that draft ahead and discard the result, by draft length."""
    found = []
    for length in settings.draft_tokens:
        way = Way(place="device", draft_tokens=length, overlap=True, rehearsal=True)
        run = play(laboratory, way, prompts, tokens=tokens, trips=(0.0,))
        found.append({"draft_tokens": length, "accepted": run.accepted, "rounds": run.rounds})
    return found


def carry_out(
    laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
) -> dict[str, Any]:
    """Time a few known rounds, then serve the prompts according to a plan."""
    settings, clients, way = data["settings"], trial["clients"], Way(**trial["way"])
    number = len(trial["measured"])
    done = sum(len(one["measured"]) for one in data["trials"])
    known = draw_prompts(
        laboratory.pair, settings["known_prompts"], played=False, seed=settings["seed"]
    )
    beside = Way(
        place="beside",
        draft_tokens=sorted(settings["draft_tokens"])[len(settings["draft_tokens"]) // 2],
    )
    between = play(
        laboratory,
        beside,
        [known[done % len(known)]],
        tokens=settings["tokens_alone"],
        trips=(0.0,),
    )
    mine = slice(number * settings["prompts"], (number + 1) * settings["prompts"])
    random = np.random.default_rng((settings["seed"], trial["scene"], 1 + number))
    trips = random.permutation(np.tile(spread(trial["round_trip_seconds"]), 10)).tolist()
    several = clients > 1 and way.place == "device"
    replayed = recorded(data["replayed"], way.draft_tokens)[mine] if several else None
    tokens = settings["tokens" if clients > 1 else "tokens_alone"]
    run = play(
        laboratory,
        way,
        data["prompts"][mine],
        tokens=tokens,
        trips=trips,
        clients=clients,
        replayed=replayed,
    )
    return {
        "tokens_per_second": clients * run.tokens_per_second,
        "served": run.served,
        "passes": run.passes,
        "pace": between.passes,
        "accepted": run.accepted,
        "differences": differences(run.outputs, data["alone"][mine]),
    }
