"""Paper 4 (HAT): Figures 1 and 6-12 and Tables 4-5 in simulation, every printed number beside ours.

What is calibrated, assumed and found is in `paper_4_simulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.reproductions.artefact import LEVEL, Artefact, Claim, Value, table
from specopt.reproductions.paper_4_findings import COMMUNICATION, DEVICE, figure_1_findings, findings
from specopt.reproductions.paper_4_simulation import (
    ALONE,
    DATASETS,
    RATES,
    STAGES,
    STRATEGIES,
    Simulations,
    calibrate,
    ms,
)
from specopt.reproductions.selection import Say
from specopt.reproductions.statements import Finding, at, statements
from specopt.solvers.prompt_chunking.simulate import PromptSimulation
from specopt.views.canvas import COLOURS
from specopt.views.panels import PRINTED, Bars, Line, Panel, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REQUESTS = 1000
RIVALS = ("U-shape", "U-Medusa", "U-Sarathi")
_QUICK_RATES = {"specbench": (4.0, 9.0), "cnn-dm": (4.0,)}
_COLOURS = {
    "U-shape": COLOURS[6],
    "U-Medusa": COLOURS[4],
    "U-Sarathi": COLOURS[0],
    "HAT": COLOURS[1],
    "ours": COLOURS[2],
}
_TITLES = {"specbench": "SpecBench, Vicuna-7B", "cnn-dm": "CNN/DM, Vicuna-13B"}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A figure or table.

    Parameters
    ----------
    title
        What it shows.
    orders
        Yields what the paper says of orders and trends.
    picture
        Draws it; None for a table.
    """

    title: str
    orders: Callable[[Simulations], Iterator[Claim]]
    picture: Callable[[Simulations], Figure] | None = None


def reproduce(names: Sequence[str], *, seeds: int, quick: bool, say: Say) -> Iterator[Artefact]:
    """Compute figures and tables again; a seed is a run of 1000 requests, planned chunks ("ours") are simulated once.

    Quick versions have few requests and no planned chunks: levels mean little then.
    """
    found: Simulations | None = None
    for one in names:
        if one == "figure-1":
            yield _figure_1()
            continue
        if found is None:
            say("calibrating to U-shape")
            requests = 150 if quick else REQUESTS
            found = Simulations(
                calibration=calibrate(requests), requests=requests, seeds=seeds,
                rates=_QUICK_RATES if quick else RATES, stages=(1, 4) if quick else STAGES, with_ours=not quick,
                say=say,
            )  # fmt: skip
        yield artefact(one, found)


def _figure_1() -> Artefact:
    rows = tuple(figure_1_findings())
    return Artefact(
        name="figure-1", title="Where the time of U-shape inference goes, and what chunks do", rows=_data(rows),
        claims=tuple(_levels(rows)),
        remark="The delay g of a batch is fitted to three of its numbers; the others are predictions.",
        draw=draw_figure_1,
    )  # fmt: skip


def artefact(name: str, found: Simulations) -> Artefact:
    """Return a figure or table that comes from the simulations."""
    part = _PARTS[name]
    rows = tuple(findings(found, name.replace("-", " ").capitalize()))
    notes = dict.fromkeys(row.note for row in rows if row.note and row.verdict in ("close", "not reproduced"))
    return Artefact(
        name=name, title=part.title, rows=_data(rows), claims=(*part.orders(found), *_levels(rows)),
        remark=" ".join(f"{note[0].upper()}{note[1:]}." for note in notes),
        draw=None if part.picture is None else (lambda: part.picture(found)),  # type: ignore[misc]
    )  # fmt: skip


def _data(rows: Sequence[Finding]) -> list[dict[str, Value]]:
    return table(
        "where quantity unit printed ours verdict note",
        ((r.said.place, r.said.statement, r.said.unit, r.said.printed, r.ours, r.verdict, r.note) for r in rows),
    )


def _levels(rows: Sequence[Finding]) -> Iterator[Claim]:
    """Yield how many printed numbers are met, which is furthest off, and which cannot be."""
    free = [row for row in rows if row.verdict not in ("calibrated", "impossible")]
    close = sum(row.verdict == "reproduced" for row in free)
    fair = close + sum(row.verdict == "close" for row in free)
    worst = max(free, key=lambda row: abs(row.ratio - 1.0))
    yield Claim(
        f"printed numbers are met within {100 * LEVEL:g} %", close == len(free),
        f"{close} of {len(free)}, {fair} within 25 %; furthest off: {worst.said.statement}, printed "
        f"{worst.said.printed:g}, here {worst.ours:.4g} {worst.said.unit}", essential=False,
    )  # fmt: skip
    for row in rows:
        if row.verdict == "impossible":
            yield Claim(
                f"{row.said.statement} is possible with the printed bandwidths", False,
                f"{row.ours:.4g} {row.said.unit}; {row.note}", f"{row.said.printed:g} {row.said.unit}", essential=False,
            )  # fmt: skip


# ---------------------------------------------------------------------------- orders and trends


def _rates(dataset: str) -> Callable[[Simulations], Iterator[Claim]]:
    return lambda found: _hat_is_fastest(found.by_rate(dataset), "request rate")


def _stages(dataset: str) -> Callable[[Simulations], Iterator[Claim]]:
    def orders(found: Simulations) -> Iterator[Claim]:
        runs = found.by_stages(dataset)
        yield from _hat_is_fastest(runs, "number of GPUs")
        falls = [np.diff([ms(run, "tbt") for run in runs[name].values()]) for name in (*RIVALS, "HAT")]
        yield Claim("TBT falls with every more GPUs", all(bool((steps < 0.0).all()) for steps in falls))

    return orders


def _hat_is_fastest(runs: Mapping[str, Mapping[float, PromptSimulation]], at: str) -> Iterator[Claim]:
    for quantity in ("ttft", "tbt"):
        ratios = [ms(runs[name][x], quantity) / ms(hat, quantity) for x, hat in runs["HAT"].items() for name in RIVALS]
        yield Claim(
            f"HAT has the least {quantity.upper()} at every {at}", min(ratios) > 1.0,
            f"the others {min(ratios):.2f} to {max(ratios):.2f} times",
        )  # fmt: skip


def _figure_8(found: Simulations) -> Iterator[Claim]:
    for dataset in DATASETS:
        spread = {name: ms(found.run(dataset, name), "stage-deviation") for name in (*RIVALS, "HAT")}
        yield Claim(
            f"chunks make the delay of batches steadier, {dataset}",
            max(spread["HAT"], spread["U-Sarathi"]) < min(spread["U-shape"], spread["U-Medusa"]),
            ", ".join(f"{name} {value:.1f} ms" for name, value in spread.items()),
        )


def _one_gpu(dataset: str) -> Callable[[Simulations], Iterator[Claim]]:
    number = {"specbench": 9, "cnn-dm": 10}[dataset]
    said = statements("paper-4")
    limit_ms, share = (said[f"figure-{number}{id}.hat"].given[key] for id, key in (("a", "limit_ms"), ("b", "share")))

    def orders(found: Simulations) -> Iterator[Claim]:
        runs = {name: found.run(dataset, name, gpus=1) for name in (*RIVALS, "HAT")}
        within = {name: 100.0 * float(run.compliance("prefill", 1e-3 * limit_ms)) for name, run in runs.items()}
        yield Claim(
            f"HAT keeps {limit_ms:g} ms per 128 prompt tokens most often", within["HAT"] >= max(within.values()),
            ", ".join(f"{name} {value:.0f} %" for name, value in within.items()),
        )  # fmt: skip
        decode = {name: 1e3 * run.sla_seconds("decode", share) for name, run in runs.items()}
        yield Claim(
            f"HAT keeps the least delay of 10 tokens for {100 * share:g} % of the requests",
            decode["HAT"] <= min(decode.values()),
            ", ".join(f"{name} {value:.0f} ms" for name, value in decode.items()),
        )

    return orders


def _table_4(found: Simulations) -> Iterator[Claim]:
    for dataset in DATASETS:
        alone = {name: ms(found.run(dataset, name, rate=ALONE), "tbt") for name in ("U-shape", "U-Medusa", "HAT")}
        medusa, hat = alone["U-shape"] / alone["U-Medusa"], alone["U-shape"] / alone["HAT"]
        yield Claim(
            f"HAT decodes faster than U-Medusa, and that faster than U-shape, {dataset}", hat > medusa > 1.0,
            f"{hat:.2f} and {medusa:.2f} times",
        )  # fmt: skip


def _table_5(found: Simulations) -> Iterator[Claim]:
    for dataset in DATASETS:
        ttft, tbt = ({name: ms(found.run(dataset, name), q) for name in STRATEGIES} for q in ("ttft", "tbt"))
        chunked, whole = ([value for name, value in ttft.items() if ("PC" in name) is on] for on in (True, False))
        yield Claim(
            f"prompt chunking cuts TTFT whatever else is on, {dataset}", max(chunked) < min(whole),
            f"{max(whole):.0f} to {max(chunked):.0f} ms",
        )  # fmt: skip
        falls = [
            [tbt[name] for name in names] for names in (("none", "SD", "SD + PD"), ("PC", "SD + PC", STRATEGIES[-1]))
        ]
        yield Claim(
            f"speculation cuts TBT, and parallel drafting cuts it further, {dataset}",
            all(steps == sorted(steps, reverse=True) for steps in falls),
            " and ".join(" > ".join(f"{value:.1f}" for value in steps) for steps in falls),
        )
        yield Claim(f"everything together has the least TBT, {dataset}", tbt[STRATEGIES[-1]] <= min(tbt.values()))


# ---------------------------------------------------------------------------- pictures, printed numbers as crosses


def draw_figure_1() -> Figure:
    """Prompt length against TTFT and the delay of a batch, chunk size against the delay saved and TTFT."""
    g, printed = FIGURE_1, {name: said.printed for name, said in statements("paper-4").items()}
    tokens = np.array([128, 256, 512, 1024, 2000])
    places, bottom, bars = np.arange(len(tokens)), np.zeros(len(tokens)), []
    for name, seconds, colour in (
        ("communication", tokens * COMMUNICATION / 2000, COLOURS[0]),
        ("in-cloud", np.array([g.at(m) for m in tokens.tolist()]), COLOURS[2]),
        ("device", tokens * DEVICE / 2000, "#7d8790"),
    ):
        bars.append(Bars(places=places, lengths=seconds, start=bottom, label=name, colour=colour))
        bottom = bottom + seconds
    lengths, sizes = np.arange(1, 2001, 7), np.array([32, 64, 128, 256, 512, 1024, 2000])
    steps, delays = np.ceil(2000 / sizes), np.array([g.at(9 + m) for m in sizes.tolist()])
    saved = 1e3 * (g.at(2009) + 63 * g.at(10) - steps * delays - (64 - steps) * g.at(10))
    batch = [1e3 * g.at(9 + m) for m in lengths.tolist()]
    risen = (1.0 + printed["figure-1c.rise"] / 100.0) * 1e3 * g.at(10)

    def chunks(title: str, y: str, values: Any, statement: str, colour: str) -> Panel:
        marks = (Line(x=sizes, y=values, colour=colour), Line(x=32, y=printed[statement], label="printed", **PRINTED))
        return Panel(title=title, x="tokens of a chunk", y=y, log_x=2, ticks=sizes, marks=marks)

    return draw(
        Panel(
            title="(b) U-shape, one request", x="tokens of the prompt", y="TTFT (s)", ticks=places,
            names=[str(m) for m in tokens],
            marks=(*bars, Line(x=places[-1], y=printed["figure-1b.ttft"], label="printed", **PRINTED)),
        ),
        Panel(
            title="(c) with 9 requests in decode", x="tokens of the prompt", y="delay of a batch (ms)",
            marks=(
                Line(x=lengths, y=batch, style="-", colour=COLOURS[2]),
                Line(x=(32, 2000), y=(risen, 280.0), label="printed", **PRINTED),
            ),
        ),
        chunks("(d) chunks of 2000 tokens", "delay of 64 steps saved (ms)", saved, "figure-1d.saved", COLOURS[0]),
        chunks("", "TTFT over that without chunks", steps * delays / g.at(2009), "figure-1d.ttft", COLOURS[1]),
        size=(14.0, 3.1),
    )  # fmt: skip


def _crosses(place: str, measure: str, x: str, y: str = "printed") -> list[Line]:
    """Return the printed numbers of a place, by what they were measured at."""
    return [
        Line(
            x=said.given.get(x, said.printed), y=100.0 * said.given[y] if y in said.given else said.printed,
            colour=_COLOURS[said.given["scheme"]], **PRINTED,
        )
        for said in at("paper-4", place)
        if said.given["measure"] == measure
    ]  # fmt: skip


def _line(name: str, x: Any, y: Any, **style: Any) -> Line:
    return Line(x=x, y=y, label=name, colour=_COLOURS[name], **style)


def _curves(
    number: int, dataset: str, runs: Mapping[str, Mapping[float, PromptSimulation]], x: str, axis: str, **style: Any
) -> Figure:
    """Draw TTFT and TBT against the request rate or the number of GPUs."""
    panels = []
    for quantity in ("ttft", "tbt"):
        lines = [_line(name, list(at), [ms(run, quantity) for run in at.values()]) for name, at in runs.items()]
        crosses = _crosses(f"Figure {number}", quantity, x)
        title, y = _TITLES[dataset] + (" (x: printed)" if crosses else ""), f"{quantity.upper()} (ms)"
        panels.append(Panel(title=title, x=axis, y=y, y_range=(0.0, None), marks=[*lines, *crosses], **style))
    return draw(*panels, size=(8.5, 2.9))


def _draw_rates(number: int, dataset: str) -> Callable[[Simulations], Figure]:
    return lambda found: _curves(number, dataset, found.by_rate(dataset), "rate", "requests per second")


def _draw_stages(number: int, dataset: str) -> Callable[[Simulations], Figure]:
    def picture(found: Simulations) -> Figure:
        runs = found.by_stages(dataset)
        return _curves(number, dataset, runs, "gpus", "GPUs in the pipeline", log_x=2, ticks=list(runs["HAT"]))

    return picture


def _draw_figure_8(found: Simulations) -> Figure:
    """Computation per GPU with its standard deviation, ours beside the printed one."""

    def bar(place: float, name: str, numbers: Sequence[float], hatched: bool) -> Bars:
        mean, deviation = numbers
        spread = [[min(deviation, mean)], [deviation]]
        return Bars(places=place, lengths=mean, spread=spread, colour=_COLOURS[name], thickness=0.36, hatched=hatched)

    panels = []
    for dataset, part in zip(DATASETS, "ab", strict=True):
        names, marks = found.names(dataset), []
        for place, name in enumerate(names):
            ours = [ms(found.run(dataset, name), quantity) for quantity in ("stage", "stage-deviation")]
            marks.append(bar(place - 0.19, name, ours, hatched=False))
            printed = [said.printed for said in at("paper-4", f"Figure 8({part})") if said.given["scheme"] == name]
            if printed:
                marks.append(bar(place + 0.19, name, printed, hatched=True))
        panels.append(
            Panel(
                title=f"{_TITLES[dataset]} (hatched: printed)", y="computation per GPU (ms)", marks=marks,
                ticks=range(len(names)), names=names, legend="none",
            )
        )  # fmt: skip
    return draw(*panels, size=(8.5, 3.0))


def _draw_one_gpu(number: int, dataset: str) -> Callable[[Simulations], Figure]:
    """Compliance with limits on prefill and decoding, one GPU."""

    def picture(found: Simulations) -> Figure:
        runs = {name: found.run(dataset, name, gpus=1) for name in found.names(dataset)}

        def panel(phase: Any, title: str, x: str, crosses: list[Line]) -> Panel:
            limits = np.linspace(0.0, 1.3 * max(1e3 * run.sla_seconds(phase, 0.95) for run in runs.values()), 300)
            lines = [
                _line(name, limits, 100.0 * run.compliance(phase, 1e-3 * limits), style="-")
                for name, run in runs.items()
            ]
            return Panel(title=title, x=x, y="requests within (%)", y_range=(0.0, None), marks=lines + crosses)

        return draw(
            panel(
                "prefill", f"{_TITLES[dataset]}, one GPU (x: printed)", "limit per 128 prompt tokens (ms)",
                _crosses(f"Figure {number}(a)", "prefill", "limit_ms"),
            ),
            panel(
                "decode", _TITLES[dataset], "limit per 10 tokens (ms)",
                _crosses(f"Figure {number}(b)", "decode", "printed", "share"),
            ),
            size=(8.5, 2.9),
        )  # fmt: skip

    return picture


def _by_dataset(title: str, first: int, orders: Any, picture: Any) -> dict[str, Part]:
    """Return two figures that differ in the data set alone."""
    return {
        f"figure-{number}": Part(
            title=f"{title}, {_TITLES[dataset].partition(',')[0]}", orders=orders(dataset),
            picture=picture(number, dataset),
        )
        for number, dataset in enumerate(DATASETS, first)
    }  # fmt: skip


_PARTS = {
    **_by_dataset("TTFT and TBT against the request rate", 6, _rates, _draw_rates),
    "figure-8": Part(title="Computation per GPU and batch", orders=_figure_8, picture=_draw_figure_8),
    **_by_dataset("Limits kept with one GPU", 9, _one_gpu, _draw_one_gpu),
    **_by_dataset("TTFT and TBT against the GPUs", 11, _stages, _draw_stages),
    "table-4": Part(title="Speedup of a single request's decoding", orders=_table_4),
    "table-5": Part(title="Which strategy gives what", orders=_table_5),
}
FIGURES = ("figure-1", *_PARTS)
