"""Paper 4 (HAT): Figures 1 and 6-12 and Tables 4-5 in simulation, every printed number beside ours.

What is calibrated, assumed and found is in `paper_4_simulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.reproductions.artefact import LEVEL, Artefact, Claim, Value
from specopt.reproductions.paper_4_pictures import figure_1
from specopt.reproductions.paper_4_published import (
    PUBLISHED_DECODE,
    PUBLISHED_PREFILL,
    PUBLISHED_TTFT,
    Row,
    figure_1_rows,
)
from specopt.reproductions.paper_4_simulation import RATES, STAGES, Reproduction, run_schemes
from specopt.reproductions.selection import Say, select
from specopt.solvers.prompt_chunking.simulate import PromptSimulation

REQUESTS = 1000
RIVALS = ("U-shape", "U-Medusa", "U-Sarathi")
_QUICK_RATES = {"specbench": (4.0, 9.0), "cnn-dm": (4.0,)}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A figure or table.

    Parameters
    ----------
    title
        What it shows.
    where
        How `Row.where` begins.
    orders
        Yields what the paper says of orders and trends.
    """

    title: str
    where: str
    orders: Callable[[Reproduction], Iterator[Claim]]


def figures() -> tuple[str, ...]:
    """Return the names of the figures and tables."""
    return ("figure-1", *_PARTS)


def reproduce(
    name: str | None = None, *, seeds: int = 5, quick: bool = False, say: Say = lambda _: None
) -> Iterator[Artefact]:
    """Compute figures and tables again; all but Figure 1 come from the same simulations, which are run once.

    Parameters
    ----------
    name
        One of them, or the beginning of its name; None: all of them.
    seeds
        Runs of 1000 requests that are averaged, at least 1; planned chunks ("ours") are simulated once.
    quick
        Few requests, and no planned chunks: levels mean little then.
    say
        Told what is going on.

    Raises
    ------
    InvalidInput
        If there is no such figure or table, or too few seeds.
    """
    if seeds < 1:
        raise InvalidInput(f"seeds: expected at least 1, got {seeds}")
    found: Reproduction | None = None
    for one in select(figures(), name):
        if one == "figure-1":
            yield _figure_1()
            continue
        if found is None:
            say("calibrating to U-shape")
            found = run_schemes(
                150 if quick else REQUESTS,
                seeds=seeds,
                rates=_QUICK_RATES if quick else RATES,
                stages=(1, 4) if quick else STAGES,
                with_ours=not quick,
                say=say,
            )
        yield _artefact(one, found)


def _figure_1() -> Artefact:
    rows = tuple(figure_1_rows())
    return Artefact(
        name="figure-1", title="Where the time of U-shape inference goes, and what chunks do", rows=_data(rows),
        claims=tuple(_levels(rows)),
        remark="The delay g of a batch is fitted to three of its numbers; the others are predictions.",
        draw=figure_1,
    )  # fmt: skip


def _artefact(name: str, found: Reproduction) -> Artefact:
    part = _PARTS[name]
    rows = [row for row in found.rows if row.where == part.where or row.where.startswith(f"{part.where}(")]
    notes = dict.fromkeys(row.note for row in rows if row.note and row.verdict in ("close", "not reproduced"))
    remark = " ".join(f"{note[0].upper()}{note[1:]}." for note in notes)
    number = name.removeprefix("figure-")
    return Artefact(
        name=name, title=part.title, rows=_data(rows), claims=(*part.orders(found), *_levels(rows)), remark=remark,
        draw=(lambda: found.figure(int(number))) if number.isdigit() else None,
    )  # fmt: skip


def _data(rows: Sequence[Row]) -> list[dict[str, Value]]:
    return [
        {
            "where": row.where,
            "quantity": row.quantity,
            "unit": row.unit,
            "printed": row.published,
            "ours": row.ours,
            "verdict": row.verdict,
            "note": row.note,
        }
        for row in rows
    ]


def _levels(rows: Sequence[Row]) -> Iterator[Claim]:
    """Yield how many printed numbers are met, which is furthest off, and which cannot be."""
    free = [row for row in rows if row.verdict not in ("calibrated", "impossible")]
    close = sum(row.verdict == "reproduced" for row in free)
    fair = close + sum(row.verdict == "close" for row in free)
    worst = max(free, key=lambda row: abs(row.ratio - 1.0))
    yield Claim(
        text=f"printed numbers are met within {100 * LEVEL:g} %",
        measured=f"{close} of {len(free)}, {fair} within 25 %; furthest off: {worst.quantity}, printed "
        f"{worst.published:g}, here {worst.ours:.4g} {worst.unit}",
        holds=close == len(free),
        essential=False,
    )
    for row in rows:
        if row.verdict == "impossible":
            yield Claim(
                text=f"{row.quantity} is possible with the printed bandwidths", printed=f"{row.published:g} {row.unit}",
                measured=f"{row.ours:.4g} {row.unit}; {row.note}", holds=False, essential=False,
            )  # fmt: skip


# ---------------------------------------------------------------------------- orders and trends


def _rates(dataset: str) -> Callable[[Reproduction], Iterator[Claim]]:
    def orders(found: Reproduction) -> Iterator[Claim]:
        yield from _hat_is_fastest(found.by_rate[dataset], "request rate")

    return orders


def _stages(dataset: str) -> Callable[[Reproduction], Iterator[Claim]]:
    def orders(found: Reproduction) -> Iterator[Claim]:
        runs = found.by_stages[dataset]
        yield from _hat_is_fastest(runs, "number of GPUs")
        falls = [np.diff([run.mean_tbt_seconds for run in runs[name].values()]) for name in (*RIVALS, "HAT")]
        yield Claim(text="TBT falls with every more GPUs", holds=all(bool((steps < 0.0).all()) for steps in falls))

    return orders


def _hat_is_fastest(runs: Mapping[str, Mapping[Any, PromptSimulation]], at: str) -> Iterator[Claim]:
    for quantity in ("ttft", "tbt"):
        ratios = [
            getattr(runs[name][x], f"mean_{quantity}_seconds") / getattr(hat, f"mean_{quantity}_seconds")
            for x, hat in runs["HAT"].items()
            for name in RIVALS
        ]
        yield Claim(
            text=f"HAT has the least {quantity.upper()} at every {at}",
            measured=f"the others {min(ratios):.2f} to {max(ratios):.2f} times", holds=min(ratios) > 1.0,
        )  # fmt: skip


def _figure_8(found: Reproduction) -> Iterator[Claim]:
    for dataset, runs in found.by_rate.items():
        rate = PUBLISHED_TTFT[dataset][0]
        spread = {name: 1e3 * by_rate[rate].stage_seconds_std for name, by_rate in runs.items()}
        yield Claim(
            text=f"chunks make the delay of batches steadier, {dataset}",
            measured=", ".join(f"{name} {value:.1f} ms" for name, value in spread.items() if name != "ours"),
            holds=max(spread["HAT"], spread["U-Sarathi"]) < min(spread["U-shape"], spread["U-Medusa"]),
        )


def _one_gpu(dataset: str) -> Callable[[Reproduction], Iterator[Claim]]:
    limit_ms, share = PUBLISHED_PREFILL[dataset][0], PUBLISHED_DECODE[dataset][0]

    def orders(found: Reproduction) -> Iterator[Claim]:
        runs = found.one_gpu[dataset]
        within = {name: float(runs[name].compliance("prefill", 1e-3 * limit_ms)) for name in (*RIVALS, "HAT")}
        yield Claim(
            text=f"HAT keeps {limit_ms:g} ms per 128 prompt tokens most often",
            measured=", ".join(f"{name} {100 * value:.0f} %" for name, value in within.items()),
            holds=within["HAT"] >= max(within.values()),
        )
        decode = {name: 1e3 * runs[name].sla_seconds("decode", share) for name in (*RIVALS, "HAT")}
        yield Claim(
            text=f"HAT keeps the least delay of 10 tokens for {100 * share:g} % of the requests",
            measured=", ".join(f"{name} {value:.0f} ms" for name, value in decode.items()),
            holds=decode["HAT"] <= min(decode.values()),
        )

    return orders


def _table_4(found: Reproduction) -> Iterator[Claim]:
    for dataset, runs in found.alone.items():
        speedup = {name: runs["U-shape"].mean_tbt_seconds / run.mean_tbt_seconds for name, run in runs.items()}
        yield Claim(
            text=f"HAT decodes faster than U-Medusa, and that faster than U-shape, {dataset}",
            measured=f"{speedup['HAT']:.2f} and {speedup['U-Medusa']:.2f} times",
            holds=speedup["HAT"] > speedup["U-Medusa"] > 1.0,
        )


def _table_5(found: Reproduction) -> Iterator[Claim]:
    for dataset, runs in found.table_5.items():
        ttft = {key: 1e3 * run.mean_ttft_seconds for key, run in runs.items()}
        tbt = {key: 1e3 * run.mean_tbt_seconds for key, run in runs.items()}
        without, chunked = (max(v for key, v in ttft.items() if key[1] is on) for on in (False, True))
        yield Claim(
            text=f"prompt chunking cuts TTFT whatever else is on, {dataset}",
            measured=f"{without:.0f} to {chunked:.0f} ms",
            holds=chunked < min(v for key, v in ttft.items() if not key[1]),
        )
        steps = [tbt[key] for key in ((False, False, False), (True, False, False), (True, False, True))]
        steps_chunked = [tbt[key] for key in ((False, True, False), (True, True, False), (True, True, True))]
        yield Claim(
            text=f"speculation cuts TBT, and parallel drafting cuts it further, {dataset}",
            measured=" > ".join(f"{v:.1f}" for v in steps) + " and " + " > ".join(f"{v:.1f}" for v in steps_chunked),
            holds=steps == sorted(steps, reverse=True) and steps_chunked == sorted(steps_chunked, reverse=True),
        )
        yield Claim(
            text=f"everything together has the least TBT, {dataset}", holds=tbt[True, True, True] <= min(tbt.values())
        )


_PARTS = {
    "figure-6": Part(
        title="TTFT and TBT against the request rate, SpecBench", where="Figure 6", orders=_rates("specbench")
    ),
    "figure-7": Part(title="TTFT and TBT against the request rate, CNN/DM", where="Figure 7", orders=_rates("cnn-dm")),
    "figure-8": Part(title="Computation per GPU and batch", where="Figure 8", orders=_figure_8),
    "figure-9": Part(title="Limits kept with one GPU, SpecBench", where="Figure 9", orders=_one_gpu("specbench")),
    "figure-10": Part(title="Limits kept with one GPU, CNN/DM", where="Figure 10", orders=_one_gpu("cnn-dm")),
    "figure-11": Part(title="TTFT and TBT against the GPUs, SpecBench", where="Figure 11", orders=_stages("specbench")),
    "figure-12": Part(title="TTFT and TBT against the GPUs, CNN/DM", where="Figure 12", orders=_stages("cnn-dm")),
    "table-4": Part(title="Speedup of a single request's decoding", where="Table 4", orders=_table_4),
    "table-5": Part(title="Which strategy gives what", where="Table 5", orders=_table_5),
}
