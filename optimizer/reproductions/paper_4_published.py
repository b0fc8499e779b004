"""What paper 4 prints, row by row, and what becomes of it in the simulation of `paper_4_simulation`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.solvers.prompt_chunking.simulate import PromptSimulation

Verdict = Literal["reproduced", "close", "not reproduced", "impossible", "calibrated"]
Key = tuple[bool, bool, bool]

LEAST_UPLOAD_MS = {"specbench": 351.2 * 8192 / 10e6 * 1e3, "cnn-dm": 1036.6 * 10240 / 10e6 * 1e3}
"""The mean prompt's hidden states at the highest printed bandwidth, 10 MB/s: no mean TTFT is below."""

PUBLISHED_TABLE_4 = {"specbench": {"U-Medusa": 1.41, "HAT": 1.65}, "cnn-dm": {"U-Medusa": 1.45, "HAT": 1.60}}
PUBLISHED_TABLE_5: dict[str, dict[Key, tuple[float, float]]] = {
    "specbench": {
        (False, False, False): (655.6, 52.3), (False, True, False): (384.0, 39.4), (True, False, False): (655.3, 38.3),
        (True, False, True): (657.9, 33.8), (True, True, False): (384.3, 30.6), (True, True, True): (384.2, 26.4),
    },
    "cnn-dm": {
        (False, False, False): (1989.0, 128.1), (False, True, False): (1038.7, 74.2),
        (True, False, False): (1993.5, 84.3), (True, False, True): (1992.1, 74.9), (True, True, False): (1039.1, 49.3),
        (True, True, True): (1039.9, 43.5),
    },
}  # fmt: skip
"""TTFT and TBT in ms by speculative decoding, prompt chunking, parallel drafting."""

PUBLISHED_TTFT = {
    "specbench": (6.0, {"HAT": 384.2, "U-Sarathi": 609.2, "U-Medusa": 644.6, "U-shape": 646.2}),
    "cnn-dm": (4.0, {"HAT": 1027.4, "U-Sarathi": 1750.6, "U-Medusa": 2214.8, "U-shape": 2140.8}),
}
"""Figures 6-7, ms, at a request rate."""

PUBLISHED_TBT_CUT = {
    "specbench": (4.0, {"U-Sarathi": 31.9, "U-Medusa": 22.5, "U-shape": 41.3}),
    "cnn-dm": (4.0, {"U-Sarathi": 40.8, "U-Medusa": 77.2, "U-shape": 74.7}),
}
"""Figures 6-7: by how many percent HAT's TBT is lower."""

PUBLISHED_TBT_RISE = {"HAT": 5.3, "U-Sarathi": 7.8, "U-Medusa": 64.5, "U-shape": 44.0}
"""Figure 6: rise of TBT from 4 to 9 requests/s, percent."""

PUBLISHED_FIGURE_8 = {
    "specbench": {"HAT": (6.8, 1.3), "U-Sarathi": (6.5, 1.2), "U-Medusa": (10.0, 8.1), "U-shape": (8.4, 7.1)},
    "cnn-dm": {"HAT": (12.4, 1.1), "U-Sarathi": (11.9, 3.4), "U-Medusa": (23.3, 27.5), "U-shape": (18.9, 24.6)},
}
"""Computation per GPU: mean and standard deviation, ms."""

PUBLISHED_PREFILL = {
    "specbench": (350.0, {"HAT": 100.0, "U-Sarathi": 76.8, "U-Medusa": 78.8, "U-shape": 86.6}),
    "cnn-dm": (300.0, {"HAT": 100.0, "U-Sarathi": 64.7, "U-Medusa": 68.9, "U-shape": 76.3}),
}
"""Figures 9-10: percent of requests within so many ms per 128 prompt tokens."""

PUBLISHED_DECODE = {
    "specbench": (0.5, {"HAT": 489.3, "U-Sarathi": 565.0, "U-Medusa": 659.8, "U-shape": 786.1}),
    "cnn-dm": (0.9, {"HAT": 1352.7, "U-Sarathi": 1561.5, "U-Medusa": 3109.6, "U-shape": 3357.8}),
}
"""Figures 9-10: ms per 10 tokens that a share of the requests keeps."""

PUBLISHED_ONE_GPU = {
    "HAT": (431.4, 39.2),
    "U-Sarathi": (1080.0, 67.5),
    "U-Medusa": (727.1, 65.3),
    "U-shape": (694.0, 88.6),
}
"""Figure 11: TTFT and TBT in ms on SpecBench with one GPU."""

PUBLISHED_FIGURE_12 = {"U-Sarathi": (36.9, 32.3), "U-Medusa": (40.7, 33.9), "U-shape": (40.1, 47.1)}
"""By how many percent HAT's TTFT and TBT are lower on CNN/DM with four GPUs."""

_FIGURE_8_RATE = {
    "specbench": "the rate is not printed; means and deviations of U-shape and U-Medusa need 12 to 16 requests/s",
    "cnn-dm": "the rate is not printed; means and deviations of U-shape and U-Medusa need 5 to 7 requests/s",
}
_ONE_GPU_RATE = {
    "specbench": "the rate is not printed; the four schemes need rates from below 4 to 12 requests/s",
    "cnn-dm": "the rate is not printed; most schemes need 2.5 to 3.5 requests/s instead of 2",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A printed number beside ours.

    Parameters
    ----------
    where, quantity, unit
        Which number it is.
    published, ours
        Both in `unit`.
    verdict
        "calibrated" if it was fitted, "impossible" if the paper's own settings rule it out, else by the distance.
    note
        Why, or what would be needed; empty if there is nothing to say.
    """

    where: str
    quantity: str
    unit: str
    published: float
    ours: float
    verdict: Verdict
    note: str = ""

    @property
    def ratio(self) -> float:
        """Ours over the printed number; NaN if that is 0."""
        return self.ours / self.published if self.published else float("nan")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The runs that rows are made of, as in `Reproduction`, and those of Tables 4 and 5."""

    by_rate: dict[str, dict[str, dict[float, PromptSimulation]]]
    by_stages: dict[str, dict[str, dict[int, PromptSimulation]]]
    one_gpu: dict[str, dict[str, PromptSimulation]]
    table_5: dict[str, dict[Key, PromptSimulation]]
    alone: dict[str, dict[str, PromptSimulation]]


def published_rows(measured: Measured) -> Iterator[Row]:
    """Yield a row for every number that the paper prints and the runs have."""
    yield from figure_1_rows()
    yield from _figures_6_7(measured)
    yield from _figure_8(measured)
    yield from _figures_9_10(measured)
    yield from _figures_11_12(measured)
    yield from _table_4(measured)
    yield from _table_5(measured)


def _row(where: str, quantity: str, unit: str, published: float, ours: float, note: str = "") -> Row:
    distance = abs(ours - published)
    verdict: Verdict = "not reproduced"
    if distance <= 0.1 * abs(published):
        verdict = "reproduced"
    elif distance <= 0.25 * abs(published):
        verdict = "close"
    return Row(where=where, quantity=quantity, unit=unit, published=published, ours=ours, verdict=verdict, note=note)


def _ttft(where: str, quantity: str, dataset: str, published: float, ours: float) -> Row:
    least = LEAST_UPLOAD_MS[dataset]
    if published >= least:
        return _row(where, quantity, "ms", published, ours)
    note = f"the upload alone takes {least:.0f} ms at the highest printed bandwidth"
    return Row(
        where=where, quantity=quantity, unit="ms", published=published, ours=ours, verdict="impossible", note=note
    )


def figure_1_rows() -> Iterator[Row]:
    """Yield the rows of Figure 1, which need no simulation."""
    g = FIGURE_1
    fitted = "g is fitted to this"
    yield Row(
        where="Figure 1(b)", quantity="in-cloud computation, 2000 tokens", unit="s", published=0.28, ours=g.at(2000),
        verdict="calibrated", note=fitted,
    )  # fmt: skip
    rise = 100.0 * (g.at(9 + 32) / g.at(9 + 1) - 1.0)
    yield Row(
        where="Figure 1(c)", quantity="delay with 32 over 1 prompt token, 9 in decode", unit="%", published=10.1,
        ours=rise, verdict="calibrated", note=fitted,
    )  # fmt: skip
    steps = -(-2000 // 32)
    whole, chunked = g.at(2009) + 63 * g.at(10), steps * g.at(9 + 32) + (64 - steps) * g.at(10)
    yield Row(
        where="Figure 1(d)", quantity="64 steps: delay saved by chunks of 32", unit="ms", published=82.3,
        ours=1e3 * (whole - chunked), verdict="calibrated", note=fitted,
    )  # fmt: skip
    yield _row("Figure 1(d)", "TTFT with chunks of 32 over without", "x", 6.6, steps * g.at(9 + 32) / g.at(2009))
    pace = 3.20 / 2000  # communication per token, Fig. 1(b)
    share = 128 * pace / (128 * (pace + 0.09 / 2000) + g.at(128))
    yield _row("Figure 1(a)", "share of communication, 128 tokens: over", "%", 80.0, 100.0 * share)
    parts = 3.20 + 0.28 + 0.09
    yield _row("Figure 1(b)", "TTFT, 2000 tokens, as the sum of its parts", "s", 3.57, parts)
    yield _row(
        "Figure 1(b)", "bandwidth behind 3.20 s, both ways as 7.5 to 12.5", "MB/s", 7.5,
        2000 * 8192 * (1.0 + 7.5 / 12.5) / 3.20 / 1e6, "the middle of the printed range is a little slower",
    )  # fmt: skip


def _figures_6_7(m: Measured) -> Iterator[Row]:
    for dataset, where in (("specbench", "Figure 6"), ("cnn-dm", "Figure 7")):
        runs = m.by_rate[dataset]
        rate, values = PUBLISHED_TTFT[dataset]
        for name, value in values.items():
            ours = 1e3 * runs[name][rate].mean_ttft_seconds
            yield _ttft(f"{where}(a)", f"TTFT of {name}, {rate:g} requests/s", dataset, value, ours)
        rate, values = PUBLISHED_TBT_CUT[dataset]
        if rate in runs["HAT"]:
            hat = runs["HAT"][rate].mean_tbt_seconds
            for name, value in values.items():
                cut = 100.0 * (1.0 - hat / runs[name][rate].mean_tbt_seconds)
                yield _row(f"{where}(b)", f"TBT of HAT below {name}, {rate:g} requests/s", "%", value, cut)
    runs = m.by_rate["specbench"]
    if {4.0, 9.0} <= runs["HAT"].keys():
        for name, value in PUBLISHED_TBT_RISE.items():
            rise = 100.0 * (runs[name][9.0].mean_tbt_seconds / runs[name][4.0].mean_tbt_seconds - 1.0)
            yield _row("Figure 6(b)", f"rise of TBT of {name}, 4 to 9 requests/s", "%", value, rise)


def _figure_8(m: Measured) -> Iterator[Row]:
    for dataset, part in (("specbench", "(a)"), ("cnn-dm", "(b)")):
        for name, (mean, std) in PUBLISHED_FIGURE_8[dataset].items():
            run = m.by_rate[dataset][name][PUBLISHED_TTFT[dataset][0]]
            where, note = f"Figure 8{part}", _FIGURE_8_RATE[dataset]
            yield _row(where, f"computation per GPU of {name}", "ms", mean, 1e3 * run.stage_seconds, note)
            yield _row(where, f"its standard deviation, {name}", "ms", std, 1e3 * run.stage_seconds_std, note)


def _figures_9_10(m: Measured) -> Iterator[Row]:
    for dataset, where in (("specbench", "Figure 9"), ("cnn-dm", "Figure 10")):
        limit, values = PUBLISHED_PREFILL[dataset]
        for name, value in values.items():
            ours = 100.0 * float(m.one_gpu[dataset][name].compliance("prefill", 1e-3 * limit))
            yield _row(
                f"{where}(a)", f"{name} within {limit:g} ms per 128 tokens", "%", value, ours, _ONE_GPU_RATE[dataset]
            )  # fmt: skip
        share, values = PUBLISHED_DECODE[dataset]
        for name, value in values.items():
            ours = 1e3 * m.one_gpu[dataset][name].sla_seconds("decode", share)
            quantity = f"10 tokens of {name}, {100 * share:g} % of requests"
            yield _row(f"{where}(b)", quantity, "ms", value, ours, _ONE_GPU_RATE[dataset])


def _figures_11_12(m: Measured) -> Iterator[Row]:
    for name, (ttft, tbt) in PUBLISHED_ONE_GPU.items():
        run = m.one_gpu["specbench"][name]
        yield _ttft("Figure 11(a)", f"TTFT of {name}, one GPU", "specbench", ttft, 1e3 * run.mean_ttft_seconds)
        yield _row("Figure 11(b)", f"TBT of {name}, one GPU", "ms", tbt, 1e3 * run.mean_tbt_seconds)
    runs = m.by_rate["cnn-dm"]
    hat = runs["HAT"][4.0]
    for name, (ttft, tbt) in PUBLISHED_FIGURE_12.items():
        other = runs[name][4.0]
        stated = PUBLISHED_TTFT["cnn-dm"][1]
        implied = 100.0 * (1.0 - stated["HAT"] / stated[name])
        yield _row(
            "Figure 12(a)", f"TTFT of HAT below {name}, four GPUs", "%", ttft,
            100.0 * (1.0 - hat.mean_ttft_seconds / other.mean_ttft_seconds), f"Figure 7 gives {implied:.1f} %",
        )  # fmt: skip
        yield _row(
            "Figure 12(b)", f"TBT of HAT below {name}, four GPUs", "%", tbt,
            100.0 * (1.0 - hat.mean_tbt_seconds / other.mean_tbt_seconds),
            f"Figure 7 gives {PUBLISHED_TBT_CUT['cnn-dm'][1][name]:.1f} %",
        )  # fmt: skip


def _table_4(m: Measured) -> Iterator[Row]:
    for dataset, values in PUBLISHED_TABLE_4.items():
        base = m.alone[dataset]["U-shape"].mean_tbt_seconds
        for name, value in values.items():
            ours = base / m.alone[dataset][name].mean_tbt_seconds
            yield _row("Table 4", f"speedup of {name} alone, {dataset}", "x", value, ours)


def _table_5(m: Measured) -> Iterator[Row]:
    for dataset, values in PUBLISHED_TABLE_5.items():
        for key, (ttft, tbt) in values.items():
            run = m.table_5[dataset][key]
            slow = key[0] and dataset == "cnn-dm"
            note = "needs faster drafting than weights can be read on the devices" if slow else ""
            name = f"{run.scheme.name}, {dataset}"
            rows = (
                _ttft("Table 5", f"TTFT with {name}", dataset, ttft, 1e3 * run.mean_ttft_seconds),
                _row("Table 5", f"TBT with {name}", "ms", tbt, 1e3 * run.mean_tbt_seconds, note),
            )
            for row in rows:
                if any(key):
                    yield row
                else:
                    yield Row(
                        where=row.where, quantity=row.quantity, unit=row.unit, published=row.published, ours=row.ours,
                        verdict="calibrated",
                    )  # fmt: skip
