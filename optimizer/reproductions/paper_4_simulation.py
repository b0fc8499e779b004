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
from dataclasses import dataclass, field, replace

import numpy as np

from specopt.instances.prompt_chunking.workload import ACCEPT_LENGTHS, paper_4_workload
from specopt.models.prompt_workload import PromptWorkload, Rounds, Scheme
from specopt.reproductions.selection import Say
from specopt.reproductions.statements import statements
from specopt.solvers.prompt_chunking.schemes import as_scheme
from specopt.solvers.prompt_chunking.simulate import Planner, PromptSimulation, run_once, simulate

DATASETS = ("specbench", "cnn-dm")
RATES = {"specbench": (4.0, 5.0, 6.0, 7.0, 8.0, 9.0), "cnn-dm": (2.0, 3.0, 4.0, 5.0)}
RATE = {"specbench": 6.0, "cnn-dm": 4.0}
RATE_ONE_GPU = {"specbench": 6.0, "cnn-dm": 2.0}
STAGES = (1, 2, 4, 8)
ALONE = 0.01
"""Requests per second that never meet."""

_SCHEMES = {"U-shape": "u-shape", "U-Medusa": "u-medusa", "U-Sarathi": "u-sarathi", "HAT": "hat", "ours": "planned"}
STRATEGIES = ("none", "PC", "SD", "SD + PD", "SD + PC", "SD + PC + PD")
"""Rows of Table 5: speculative decoding, prompt chunking, parallel drafting."""


def schemes(dataset: str) -> dict[str, Scheme]:
    """Return the four schemes of the paper and HAT with planned chunks instead of those of Eq. 3."""
    workload = paper_4_workload(dataset)
    return {ours: replace(as_scheme(workload, name), name=ours) for ours, name in _SCHEMES.items()}


def strategies(dataset: str) -> dict[str, Scheme]:
    """Return the rows of Table 5."""
    drafts, single = Rounds.threshold(ACCEPT_LENGTHS[dataset][1]), Rounds.one_by_one()
    return {
        name: Scheme(
            name=name, chunking="equation-3" if "PC" in name else "whole", rounds=drafts if "SD" in name else single,
            parallel_drafting="PD" in name,
        )
        for name in STRATEGIES
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
    printed = statements("paper-4")
    scale, cloud, latency = dict.fromkeys(DATASETS, 1.0), dict.fromkeys(DATASETS, 1.0), 0.005
    for dataset in DATASETS:
        ttft, tbt = (1e-3 * printed[f"table-5.{dataset}.none.{quantity}"].printed for quantity in ("ttft", "tbt"))
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


@dataclass(frozen=True, kw_only=True)
class Simulations:
    """Every scheme on every workload, each simulated when first asked for.

    Parameters
    ----------
    calibration
        From `calibrate`, best with the same requests.
    requests
        That count, per run.
    seeds
        How many runs are averaged, from seed 0 on, the calibration's; planned chunks, which take most of the time, are
        simulated with that one alone.
    planner
        Chunks of "ours"; None: the default of `simulate`.
    rates, stages
        Request rates of Figures 6-7 by data set, and GPUs of Figures 11-12.
    with_ours
        Whether planned chunks are simulated too; a plan is made for every request.
    say
        Told what is going on.
    """

    calibration: Calibration
    requests: int = 1000
    seeds: int = 1
    planner: Planner | None = None
    rates: Mapping[str, Sequence[float]] = field(default_factory=lambda: RATES)
    stages: Sequence[int] = STAGES
    with_ours: bool = True
    say: Say = lambda _: None
    _done: dict[tuple[str, str, float, int], PromptSimulation] = field(default_factory=dict)

    def names(self, dataset: str) -> list[str]:
        """Return the names of the schemes."""
        return [name for name in schemes(dataset) if self.with_ours or name != "ours"]

    def run(self, dataset: str, name: str, *, rate: float | None = None, gpus: int | None = None) -> PromptSimulation:
        """Return a scheme or strategy at a request rate, or at that of the figures with GPUs on their axis."""
        if rate is None:
            rate = RATE[dataset] if gpus is None else RATE_ONE_GPU[dataset]
        key = (dataset, name, rate, gpus or 4)
        if key not in self._done:
            self._done[key] = self._simulate(*key)
        return self._done[key]

    def _simulate(self, dataset: str, name: str, rate: float, gpus: int) -> PromptSimulation:
        self.say(f"{dataset}, {name}, {rate:g} requests/s, {gpus} GPUs")
        scheme = (schemes(dataset) | strategies(dataset))[name]
        workload = self.calibration.workload(dataset, rate, gpus)
        times = 1 if scheme.chunking == "planned" else self.seeds
        if rate == ALONE:
            return simulate(workload, scheme, replications=times, requests=100, warm_up_requests=0)
        return simulate(workload, scheme, replications=times, requests=self.requests, planner=self.planner)

    def by_rate(self, dataset: str) -> dict[str, dict[float, PromptSimulation]]:
        """Return Figure 6 or 7: runs by scheme and request rate."""
        rates = sorted({*self.rates[dataset], RATE[dataset]})
        return {name: {rate: self.run(dataset, name, rate=rate) for rate in rates} for name in self.names(dataset)}

    def by_stages(self, dataset: str) -> dict[str, dict[float, PromptSimulation]]:
        """Return Figure 11 or 12: runs by scheme and number of GPUs."""
        stages = sorted({*self.stages, 1})
        return {name: {gpus: self.run(dataset, name, gpus=gpus) for gpus in stages} for name in self.names(dataset)}


def ms(run: PromptSimulation, quantity: str) -> float:
    """Return a mean in ms: ``ttft``, ``tbt``, ``stage`` (computation per GPU and batch) or ``stage-deviation``."""
    seconds = {
        "ttft": run.mean_ttft_seconds,
        "tbt": run.mean_tbt_seconds,
        "stage": run.stage_seconds,
        "stage-deviation": run.stage_seconds_std,
    }
    return 1e3 * seconds[quantity]
