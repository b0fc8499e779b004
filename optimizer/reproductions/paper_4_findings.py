"""Every number that paper 4 prints beside ours, from the simulations of `paper_4_simulation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.reproductions.artefact import within
from specopt.reproductions.paper_4_simulation import ALONE, Simulations, ms
from specopt.reproductions.statements import Finding, Statement, at

LEAST_UPLOAD_MS = {"specbench": 351.2 * 8192 / 10e6 * 1e3, "cnn-dm": 1036.6 * 10240 / 10e6 * 1e3}
"""The mean prompt's hidden states at the highest printed bandwidth, 10 MB/s: no mean TTFT is below."""

COMMUNICATION, IN_CLOUD, DEVICE = 3.20, 0.28, 0.09
"""Seconds of a prompt of 2000 tokens, Fig. 1(b)."""


def figure_1_findings() -> Iterator[Finding]:
    """Yield those of Figure 1, which need no simulation."""
    g = FIGURE_1
    steps = -(-2000 // 32)
    whole, chunked = g.at(2009) + 63 * g.at(10), steps * g.at(9 + 32) + (64 - steps) * g.at(10)
    link, device = COMMUNICATION / 2000, DEVICE / 2000  # per token
    ours = {
        "figure-1b.in-cloud": g.at(2000),
        "figure-1c.rise": 100.0 * (g.at(9 + 32) / g.at(9 + 1) - 1.0),
        "figure-1d.saved": 1e3 * (whole - chunked),
        "figure-1d.ttft": steps * g.at(9 + 32) / g.at(2009),
        "figure-1a.communication": 100.0 * 128 * link / (128 * (link + device) + g.at(128)),
        "figure-1b.ttft": COMMUNICATION + IN_CLOUD + DEVICE,
        "figure-1b.bandwidth": 2000 * 8192 * (1.0 + 7.5 / 12.5) / COMMUNICATION / 1e6,
    }
    for said in at("paper-4", "Figure 1"):
        yield _finding(said, ours[said.id])


def findings(found: Simulations, *places: str) -> Iterator[Finding]:
    """Yield what becomes of the statements of some places, such as ``Figure 6``."""
    for said in at("paper-4", *places):
        given = {key: value for key, value in said.given.items() if key != "calibrated"}
        yield _finding(said, _MEASURES[given.pop("measure")](found, **given))


def _finding(said: Statement, ours: float) -> Finding:
    least = LEAST_UPLOAD_MS[said.given["dataset"]] if said.given.get("measure") == "ttft" else 0.0
    if said.given.get("calibrated"):
        return Finding(said, ours, "calibrated", said.note)
    if said.printed < least:
        note = f"the upload alone takes {least:.0f} ms at the highest printed bandwidth"
        return Finding(said, ours, "impossible", note)
    words = {0.1: "reproduced", 0.25: "close"}
    verdict = next((word for level, word in words.items() if within(ours, said.printed, level)), "not reproduced")
    return Finding(said, ours, verdict, said.note)


def _mean(quantity: str) -> Callable[..., float]:
    return lambda found, dataset, scheme, **at: ms(found.run(dataset, scheme, **at), quantity)


def _below(quantity: str) -> Callable[..., float]:
    """Return by how many percent HAT is below a scheme."""

    def measure(found: Simulations, dataset: str, scheme: str, **at: Any) -> float:
        hat, other = (ms(found.run(dataset, name, **at), quantity) for name in ("HAT", scheme))
        return 100.0 * (1.0 - hat / other)

    return measure


def _rise(found: Simulations, dataset: str, scheme: str, rates: list[float]) -> float:
    low, high = (ms(found.run(dataset, scheme, rate=rate), "tbt") for rate in rates)
    return 100.0 * (high / low - 1.0)


def _speedup(found: Simulations, dataset: str, scheme: str) -> float:
    slow, fast = (ms(found.run(dataset, name, rate=ALONE), "tbt") for name in ("U-shape", scheme))
    return slow / fast


def _prefill(found: Simulations, dataset: str, scheme: str, gpus: int, limit_ms: float) -> float:
    return 100.0 * float(found.run(dataset, scheme, gpus=gpus).compliance("prefill", 1e-3 * limit_ms))


def _decode(found: Simulations, dataset: str, scheme: str, gpus: int, share: float) -> float:
    return 1e3 * found.run(dataset, scheme, gpus=gpus).sla_seconds("decode", share)


_MEASURES: Mapping[str, Callable[..., float]] = {
    **{quantity: _mean(quantity) for quantity in ("ttft", "tbt", "stage", "stage-deviation")},
    "ttft-below": _below("ttft"),
    "tbt-below": _below("tbt"),
    "tbt-rise": _rise,
    "prefill": _prefill,
    "decode": _decode,
    "speedup": _speedup,
}
