"""Tables 4 and 5 and Figures 1 and 6-12 of paper 4 (HAT), in simulation, from one calibration to U-shape.

Calibrated (`calibrate`), to U-shape's TTFT and TBT in Table 5 and to nothing else: a factor on the printed bandwidths
of each data set, the latency of the link (SpecBench's TBT), and a factor on g of Vicuna-13B (CNN/DM's TBT). Taken from
Fig. 1, to three of its numbers: g of Vicuna-7B. Taken from Table 4: the accept lengths. What else the paper leaves
open is set in `instances/prompt_chunking/workload.py`; the rates of Tables 4-5 and of Figs. 8-12 are not printed:
6 requests/s for SpecBench and 4 for CNN/DM, and with one GPU, which could not carry that, 2 for CNN/DM.

Every printed number stands beside ours with a verdict: "reproduced" within 10 %, "close" within 25 %, otherwise "not
reproduced", and "impossible" where it is below what the printed bandwidths allow.

What is found. SpecBench comes out: TTFT of all four schemes with four GPUs and with one, HAT's TBT, Table 4, and
nearly all of Table 5 within 10 %; chunking cuts TTFT by 39 % (printed 41 %). On CNN/DM the calibration needs links 1.4
times as fast as printed, and HAT's printed TTFT, 1027-1040 ms, is below the upload of the mean prompt at the highest
printed bandwidth, 1061 ms: impossible as printed. Its TBT under speculation is 17-37 % above the printed one: that
needs faster drafting than the devices can read the draft model's weights.

Not reproduced: how strongly TBT of U-shape and U-Medusa rises from 4 to 9 requests/s (25 and 33 %, printed 44 and 64
%), and the spread of Fig. 8, which needs more long prompts in the batches: 12-16 requests/s on SpecBench, 5-7 on
CNN/DM; the decoding SLAs of Figs. 9-10, which no single rate explains. Figs. 7 and 12 give different factors for one
setting, and the abstract's 41-54 % and 41-77 % hold for CNN/DM at 4 requests/s only.

Chunks that are best for one prompt ("ours") gain nothing here with four GPUs, where messages are free and Eq. 3 is
near the optimum; with eight GPUs Eq. 3 cuts CNN/DM so finely that the device's own overhead per chunk takes over, and
planned chunks are 26 % faster. Being larger, they make rounds of other requests up to 20 % slower: TTFT alone is not
all that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from specopt.instances.prompt_chunking.workload import ACCEPT_LENGTHS, paper_4_workload
from specopt.models.prompt_workload import PromptWorkload, Rounds, Scheme
from specopt.reproductions.paper_4_published import PUBLISHED_TABLE_5, Key, Measured, Row, published_rows
from specopt.reproductions.selection import Say
from specopt.solvers.prompt_chunking.schemes import as_scheme
from specopt.solvers.prompt_chunking.simulate import Planner, PromptSimulation, run_once, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATASETS = ("specbench", "cnn-dm")
RATES = {"specbench": (4.0, 5.0, 6.0, 7.0, 8.0, 9.0), "cnn-dm": (2.0, 3.0, 4.0, 5.0)}
RATE = {"specbench": 6.0, "cnn-dm": 4.0}
RATE_ONE_GPU = {"specbench": 6.0, "cnn-dm": 2.0}
STAGES = (1, 2, 4, 8)

_SCHEMES = {"U-shape": "u-shape", "U-Medusa": "u-medusa", "U-Sarathi": "u-sarathi", "HAT": "hat", "ours": "planned"}


def schemes(dataset: str) -> dict[str, Scheme]:
    """Return the four schemes of the paper and HAT with planned chunks instead of those of Eq. 3."""
    workload = paper_4_workload(dataset)
    return {ours: replace(as_scheme(workload, name), name=ours) for ours, name in _SCHEMES.items()}


def strategies(dataset: str) -> dict[tuple[bool, bool, bool], Scheme]:
    """Return the rows of Table 5: speculative decoding, prompt chunking, parallel drafting."""
    drafts, single = Rounds.threshold(ACCEPT_LENGTHS[dataset][1]), Rounds.one_by_one()
    return {
        (sd, pc, pd): Scheme(
            name=" + ".join(word for word, on in (("SD", sd), ("PC", pc), ("PD", pd)) if on) or "none",
            chunking="equation-3" if pc else "whole", rounds=drafts if sd else single, parallel_drafting=pd,
        )
        for sd, pc, pd in PUBLISHED_TABLE_5[dataset]
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was fitted to U-shape, by data set.

    Parameters
    ----------
    link_scale
        Times the printed bandwidths.
    link_latency_seconds
        One way, the same for both data sets.
    cloud_scale
        Times g; 1 for SpecBench.
    """

    link_scale: dict[str, float]
    link_latency_seconds: float
    cloud_scale: dict[str, float]

    def workload(self, dataset: str, rate: float, pipeline_length: int = 4) -> PromptWorkload:
        """Return a calibrated workload."""
        return paper_4_workload(
            dataset,
            requests_per_second=rate,
            pipeline_length=pipeline_length,
            link_scale=self.link_scale[dataset],
            cloud_scale=self.cloud_scale[dataset],
            link_latency_seconds=self.link_latency_seconds,
        )


def calibrate(requests: int = 1000, *, seed: int = 0, rounds: int = 12) -> Calibration:
    """Fit bandwidths, latency and Vicuna-13B's g to U-shape's TTFT and TBT in Table 5, by fixed-point steps."""
    scale, cloud, latency = dict.fromkeys(DATASETS, 1.0), dict.fromkeys(DATASETS, 1.0), 0.005
    for dataset in DATASETS:
        ttft, tbt = (1e-3 * value for value in PUBLISHED_TABLE_5[dataset][False, False, False])
        scheme = schemes(dataset)["U-shape"]
        for _ in range(rounds):
            found = Calibration(link_scale=dict(scale), link_latency_seconds=latency, cloud_scale=dict(cloud))
            workload = found.workload(dataset, RATE[dataset])
            run = run_once(workload, scheme, requests=requests, seed=seed)
            # what the link takes of TTFT, to be scaled; the rest stays
            up, down = workload.uplink_bytes_per_second, workload.downlink_bytes_per_second
            pace = sum(float(np.log(high / low) / (high - low)) for low, high in (up, down))
            link = float(run.prompt_tokens.mean()) * workload.bytes_per_token * pace
            scale[dataset] *= link / max(0.1 * link, link + ttft - run.mean_ttft_seconds)
            if dataset == "specbench":
                latency = max(0.0, latency + 0.5 * (tbt - run.mean_tbt_seconds))
            else:
                cloud[dataset] *= (tbt / run.mean_tbt_seconds) ** 0.7
    return Calibration(link_scale=scale, link_latency_seconds=latency, cloud_scale=cloud)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What came out.

    Parameters
    ----------
    calibration
        What was fitted.
    rows
        Printed numbers beside ours.
    by_rate, by_stages
        Figures 6-7 and 11-12: runs by data set, scheme and request rate, or GPUs.
    one_gpu
        Figures 9-10: runs by data set and scheme.
    table_5, alone
        Tables 5 and 4: runs by data set and strategy, and of single requests by data set and scheme.
    """

    calibration: Calibration
    rows: tuple[Row, ...]
    by_rate: dict[str, dict[str, dict[float, PromptSimulation]]]
    by_stages: dict[str, dict[str, dict[int, PromptSimulation]]]
    one_gpu: dict[str, dict[str, PromptSimulation]]
    table_5: dict[str, dict[Key, PromptSimulation]]
    alone: dict[str, dict[str, PromptSimulation]]

    def counts(self) -> dict[str, int]:
        """Return how many rows have which verdict."""
        names = [row.verdict for row in self.rows]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def figure(self, number: int) -> Figure:
        """Return the picture of Figure 1, 6, 7, 8, 9, 10, 11 or 12.

        Raises
        ------
        InvalidInput
            If there is no such figure.
        """
        from specopt.reproductions.paper_4_pictures import picture

        return picture(self, number)


def run_schemes(
    requests: int = 1000,
    *,
    seed: int = 0,
    seeds: int = 1,
    planner: Planner | None = None,
    rates: Mapping[str, Sequence[float]] | None = None,
    stages: Sequence[int] = STAGES,
    calibration: Calibration | None = None,
    with_ours: bool = True,
    say: Say = lambda _: None,
) -> Reproduction:
    """Run everything.

    Parameters
    ----------
    requests
        That count, per run.
    seed, seeds
        The first seed, and of how many runs the mean is taken; the calibration takes the first, and so do planned
        chunks, which take most of the time.
    planner
        Chunks of "ours"; None: the default of `simulate`.
    rates, stages
        Request rates of Figures 6-7 by data set, and GPUs of Figures 11-12.
    calibration
        None: `calibrate` with the same requests as those of the runs.
    with_ours
        Whether planned chunks are simulated too; a plan is made for every request.
    say
        Told what is going on.
    """
    fitted = calibrate(requests, seed=seed) if calibration is None else calibration
    chosen: Mapping[str, Sequence[float]] = RATES if rates is None else rates

    def run(dataset: str, scheme: Scheme, rate: float, gpus: int = 4) -> PromptSimulation:
        say(f"{dataset}, {scheme.name}, {rate:g} requests/s, {gpus} GPUs")
        workload = fitted.workload(dataset, rate, gpus)
        times = 1 if scheme.chunking == "planned" else seeds
        return simulate(workload, scheme, seed=seed, replications=times, requests=requests, planner=planner)

    def run_alone(dataset: str, scheme: Scheme) -> PromptSimulation:
        workload = fitted.workload(dataset, 0.01)
        return simulate(workload, scheme, seed=seed, replications=seeds, requests=100, warm_up_requests=0)

    named = {
        dataset: {name: scheme for name, scheme in schemes(dataset).items() if with_ours or name != "ours"}
        for dataset in DATASETS
    }
    by_rate = {
        dataset: {
            name: {rate: run(dataset, scheme, rate) for rate in sorted({*chosen[dataset], RATE[dataset]})}
            for name, scheme in named[dataset].items()
        }
        for dataset in DATASETS
    }
    by_stages = {
        dataset: {
            name: {gpus: run(dataset, scheme, RATE_ONE_GPU[dataset], gpus) for gpus in sorted({*stages, 1})}
            for name, scheme in named[dataset].items()
        }
        for dataset in DATASETS
    }
    one_gpu = {d: {name: runs[1] for name, runs in by_stages[d].items()} for d in DATASETS}
    table_5 = {d: {key: run(d, scheme, RATE[d]) for key, scheme in strategies(d).items()} for d in DATASETS}
    alone = {
        d: {name: run_alone(d, named[d][name]) for name in ("U-shape", "U-Medusa", "HAT")} for d in DATASETS
    }  # fmt: skip
    measured = Measured(by_rate=by_rate, by_stages=by_stages, one_gpu=one_gpu, table_5=table_5, alone=alone)
    return Reproduction(
        calibration=fitted, rows=tuple(published_rows(measured)), by_rate=by_rate, by_stages=by_stages,
        one_gpu=one_gpu, table_5=table_5, alone=alone,
    )  # fmt: skip
