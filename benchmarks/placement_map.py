"""Placement: the best place for the clients of one unit, by round trip and number of clients, and
the changes of the best place due to batching.

All clients of a unit draft in one place, with one draft length. The judge evaluates every place and
length. ``python benchmarks/placement_map.py`` writes the map into
`docs/recorded/placement-map.csv`, and `make pages` draws it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from table import Benchmark, Row

import specopt
from specopt.instances.placement.parts import drafter
from specopt.kinds.chart import Chart, Picture, category
from specopt.models.files import write_text
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem

RECORD = Path(__file__).parents[1] / "docs" / "recorded" / "placement-map.csv"
DEVICES = (0.0015, 0.003, 0.012)
"""Seconds of a draft token on the device."""
SIZE = 3.0
"""Milliseconds of the drafter per token of one client beside the verifier. A verify pass takes
eight.
"""
TRIPS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192)
WAYS = ("none", "beside", "device", "device, ahead")
LONGEST = 8


def plans(clients: int) -> Iterator[tuple[str, int, PlacementPlan]]:
    """Return all plans in which the clients of one unit draft in one place."""
    for way in WAYS:
        for tokens in range(1, LONGEST + 1) if way != "none" else (0,):
            one: dict[str, Any] = {
                "class": "chat",
                "per_unit": clients,
                "place": way.partition(",")[0],
            }
            if one["place"] == "device":
                one |= {"drafter": "small", "draft_tokens": tokens, "overlap": way != "device"}
            beside = {"drafter": "small", "draft_tokens": tokens} if way == "beside" else None
            group = {"verifier": "verifier", "units": 1, "beside": beside, "clients": [one]}
            yield way, tokens, PlacementPlan.from_dict({"groups": [group]})


def best(device: float, trip: float, clients: int) -> dict[str, Any]:
    """Return the best place and length, and the tokens per second of a client in each place."""
    problem = specopt.generate(
        "placement/one-class",
        number_of_clients=clients,
        round_trip=trip,
        device_seconds=device,
        max_draft=LONGEST,
    )
    assert isinstance(problem, PlacementProblem)
    problem = replace(problem, drafters=(drafter("small", SIZE, ["verifier"]),))
    found: dict[str, tuple[float, int]] = {}
    for way, tokens, plan in plans(clients):
        if not problem.violations(plan):
            rate = problem.evaluate(plan).objective / clients
            found[way] = max(found.get(way, (0.0, 0)), (rate, tokens))
    place = max(found, key=lambda way: found[way][0])
    rates = {way: f"{found.get(way, (0.0, 0))[0]:.6g}" for way in WAYS}  # 0: no memory for so many
    return {
        "device_seconds": device,
        "round_trip_seconds": trip,
        "clients": clients,
        "place": place,
        "draft_tokens": found[place][1],
        **rates,
    }


def cells(smoke: bool) -> list[dict[str, Any]]:
    """Return the map, a row per cell."""
    trips, numbers = (TRIPS[:2], CLIENTS[:2]) if smoke else (TRIPS, CLIENTS)
    return [
        best(device, trip, clients) for device in DEVICES for trip in trips for clients in numbers
    ]


def summary(rows: list[dict[str, Any]]) -> list[Row]:
    """Return how often the best place differs from that of a single client, and the loss of using
    that place.
    """
    alone = {
        (row["device_seconds"], row["round_trip_seconds"]): row["place"]
        for row in rows
        if int(row["clients"]) == 1
    }
    table = []
    for device in dict.fromkeys(row["device_seconds"] for row in rows):
        many = [row for row in rows if row["device_seconds"] == device and int(row["clients"]) > 1]
        kept = [alone[device, row["round_trip_seconds"]] for row in many]
        turned = [
            (row, place) for row, place in zip(many, kept, strict=True) if row["place"] != place
        ]
        lost = [
            1.0 - float(row[place]) / float(row[row["place"]])
            for row, place in turned
            if float(row[place])
        ]
        figure = (
            f"{len(turned)} of {len(many)} cells, {len(turned) - len(lost)} of them for memory;"
            f" else the place of one client loses up to {100 * max(lost, default=0.0):.1f} %"
        )
        table.append(
            Row(
                f"device of {1e3 * float(device):g} ms a token: the place changes with clients",
                figure,
            )
        )
    return table


def placed(smoke: bool) -> list[Row]:
    """Report how often the best place differs from that of a single client."""
    return summary(cells(smoke))


def picture(rows: list[dict[str, Any]]) -> Picture:
    """Return the map with one panel per device."""
    charts = []
    for device in dict.fromkeys(row["device_seconds"] for row in rows):
        shown = [
            {
                "round trip (ms)": f"{1e3 * float(row['round_trip_seconds']):g}",
                "clients": str(row["clients"]),
                "place": row["place"],
                "tokens": "" if row["place"] == "none" else str(row["draft_tokens"]),
            }
            for row in rows
            if row["device_seconds"] == device
        ]
        order = [str(number) for number in reversed(CLIENTS)]
        axes = {"x": category("round trip (ms)"), "y": category("clients") | {"sort": order}}
        spec = {
            "encoding": axes,
            "layer": [
                {
                    "mark": "rect",
                    "encoding": {"color": category("place", scale={"domain": list(WAYS)})},
                },
                {
                    "mark": {"type": "text", "color": "var(--paper)"},
                    "encoding": {"text": {"field": "tokens"}},
                },
            ],
        }
        charts.append(
            Chart(title=f"device: {1e3 * float(device):g} ms a draft token", rows=shown, spec=spec)
        )
    return Picture(charts, columns=len(charts), width=260)


def recorded() -> list[dict[str, Any]]:
    """Return the recorded map."""
    with RECORD.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Write the map."""
    rows = cells(smoke=False)
    lines = [
        ",".join(f'"{value}"' if "," in str(value) else str(value) for value in one)
        for one in (rows[0], *(row.values() for row in rows))
    ]
    write_text(RECORD, "\n".join(lines) + "\n")


BENCHMARKS = (Benchmark("placement: the best place by round trip and clients", placed),)

if __name__ == "__main__":
    main()
