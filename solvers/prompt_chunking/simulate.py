"""Simulation of prefill and decoding for many devices that share one cloud pipeline.

Its results are the time to first token (TTFT) and the time between tokens (TBT).

The simulation makes the following assumptions beyond the event model of `prompt-chunking`:

* Batching is continuous: whenever the first stage is free, all waiting work enters one batch, with
  at most one chunk per prompt. A batch of m tokens takes g(mu + m)/P per stage, where mu represents
  requests outside the simulation.
* In a round of decoding, the device drafts tokens, computes the shallow states of the tokens that
  it sends, and sends these states over the link. The round joins one batch and returns. All tokens
  of a round appear together. The TBT of a request is (last - first token)/(tokens - 1).
* "equation-3" uses the moving average over the batches so far as mu (Eq. 1), and leaves g
  unchanged. If Eq. 3 has no root, the prompt is sent as one chunk.
* "server" is U-Sarathi, with one message per prompt, chunks with a common token budget per batch,
  and no download before the prompt is complete.
* Counted requests arrive after the warm-up, and other requests keep arriving until all counted
  requests have ended.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import specopt.solvers.prompt_chunking.kernels.simulation as kernels
from specopt.models.arguments import integer, one_of, random_generator
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints
from specopt.models.prompt_chunking.problem import Download, PromptChunkingProblem
from specopt.models.prompt_chunking.workload import PromptWorkload, Scheme
from specopt.solvers.budget import Budget
from specopt.solvers.policy import Policy as OwnPolicy
from specopt.solvers.policy import decided, twin
from specopt.solvers.prompt_chunking.baselines import Geometric
from specopt.solvers.prompt_chunking.schemes import as_scheme
from specopt.solvers.simulation import Replications, Simulation, Tell, random_key

MAX_REQUESTS = 1_000_000
_MODES = ("whole", "planned", "equation-3", "server")  # in the order of the kernel's codes
Wait = Literal["none", "serial", "overlap"]
_WAITS: tuple[Wait, ...] = ("none", "serial", "overlap")  # in the order of the kernel's codes
_ESTIMATES = {
    "ttft_seconds": "mean_ttft_seconds",
    "tbt_seconds": "mean_tbt_seconds",
    "ttft_seconds_of_95_percent": "ttft_seconds_of_95_percent",
    "stage_seconds": "stage_seconds",
    "batch_tokens": "batch_tokens",
    "busy_share": "busy_share",
}  # estimates in `PromptSimulation`, and the corresponding fields of a run
_PROBLEM = (*kernels.Edge._fields, "cloud_delay", "pipeline_length")
"""Names of the fields that a workload has in common with the problem of each of its requests."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChunkingRun:
    """Results of one run of a scheme on a workload.

    Parameters
    ----------
    prompt_tokens, ttft_seconds, tbt_seconds
        Prompt length, TTFT and TBT of each counted request, with times in seconds. TBT is NaN for
        responses of one token, and times that were not reached before the run ended are NaN.
    mean_ttft_seconds, mean_tbt_seconds, ttft_seconds_of_95_percent
        Means over requests, and the 95 % quantile of TTFT, in seconds.
    reached
        Record of each counted request: the times of the "first" and the "last" token, the "chunks"
        processed, the "rounds" of decoding, and the draft steps saved by parallel drafting
        ("hidden").
    stage_seconds, stage_seconds_std
        Mean and standard deviation of the time that a batch takes on one GPU, in seconds (Fig. 8).
    batch_tokens, background_tokens
        Mean number of tokens per batch, and mean of mu as estimated by Eq. 1.
    busy_share
        Fraction of the time during which the first stage is busy.
    batches, events, seconds
        Number of counted batches, number of all events, and computing time in seconds. The time
        excludes planning and compilation.
    log
        Log of the first batches, with the fields "start", "prompt_tokens", "round_tokens", and
        "seconds" (the time on one stage).
    """

    prompt_tokens: Ints = field(repr=False)
    ttft_seconds: Floats = field(repr=False)
    tbt_seconds: Floats = field(repr=False)
    mean_ttft_seconds: float
    mean_tbt_seconds: float
    ttft_seconds_of_95_percent: float
    reached: NDArray[Any] = field(repr=False)
    stage_seconds: float
    stage_seconds_std: float
    batch_tokens: float
    background_tokens: float
    busy_share: float
    batches: int
    events: int
    seconds: float
    log: NDArray[Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptSimulation(Simulation):
    """Simulated results of a scheme, with one run per replication.

    `estimates` contains the mean TTFT ("ttft_seconds") and TBT ("tbt_seconds") over requests, the
    95 % quantile of TTFT, and statistics of the batches in the cloud.

    Parameters
    ----------
    scheme
        Simulated scheme.
    requests, warm_up_requests
        Number of counted requests in every run, and number of warm-up requests that arrive before
        them.
    runs
        Results of the runs, one per replication.
    """

    kind = PromptChunkingProblem.kind
    scheme: Scheme
    requests: int
    warm_up_requests: int
    runs: tuple[ChunkingRun, ...] = field(repr=False)

    @property
    def facts(self) -> dict[str, str]:
        """Description of the number of requests, for reports."""
        return {
            "requests": (
                f"{self.requests} per replication, after {self.warm_up_requests} warm-up requests"
            )
        }

    @property
    def mean_ttft_seconds(self) -> float:
        """Mean time to first token, in seconds."""
        return self.estimates["ttft_seconds"].mean

    @property
    def mean_tbt_seconds(self) -> float:
        """Mean time between tokens, in seconds."""
        return self.estimates["tbt_seconds"].mean

    @property
    def stage_seconds(self) -> float:
        """Mean time that a batch takes on one GPU, in seconds."""
        return self.estimates["stage_seconds"].mean

    @property
    def stage_seconds_std(self) -> float:
        """Standard deviation of the time that a batch takes on one GPU, in seconds.

        The standard deviation is computed within each run and averaged over runs.
        """
        return statistics.fmean(run.stage_seconds_std for run in self.runs)


def simulate(
    workload: PromptWorkload,
    policy: Scheme | OwnPolicy | str = "hat",
    *,
    seed: int = 0,
    replications: int = 5,
    callback: Tell | None = None,
    requests: int = 1000,
    warm_up_requests: int = 200,
    wait: Wait = "none",
    download: Download = "all",
) -> PromptSimulation:
    """Simulate a serving scheme in several runs.

    Each run ends when its counted requests are complete.

    Parameters
    ----------
    workload, policy
        Workload of requests to the cloud, and the way in which they are served. The latter is a
        scheme, the name of a scheme, or a user-defined `specopt.Policy`. Such a policy replaces Eq.
        3 in the scheme "hat": it receives a `State` and returns the number of tokens of the next
        chunk.
    seed
        Random seed of the first run. The other runs use consecutive seeds.
    replications
        Number of runs.
    callback
        Function called after every run with the number of completed runs and their mean TTFT.
    requests, warm_up_requests
        As in `run_once`.
    wait, download
        As in `play`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """
    series = Replications(seed, replications, callback)
    own = policy if isinstance(policy, OwnPolicy) else None
    scheme = as_scheme(workload, "hat" if isinstance(policy, OwnPolicy) else policy)
    once = partial(
        run_once,
        workload,
        scheme,
        requests=requests,
        warm_up_requests=warm_up_requests,
        wait=wait,
        download=download,
        policy=own,
    )
    runs, found = series.each(once, _ESTIMATES)
    return series.result(
        PromptSimulation,
        scheme.name if own is None else own.name,
        found,
        scheme=scheme,
        requests=int(requests),
        warm_up_requests=int(warm_up_requests),
        runs=runs,
    )


def run_once(
    workload: PromptWorkload,
    scheme: Scheme,
    *,
    requests: int = 1000,
    seed: int = 0,
    warm_up_requests: int = 200,
    **options: Any,
) -> ChunkingRun:
    """Simulate random requests until the counted requests are complete.

    For schemes whose chunking is "planned", the method ``geometric`` plans the chunks of every
    request. In the problems that it solves, the number of background tokens is the mean that a
    preliminary run with "equation-3" yields.

    Parameters
    ----------
    workload, scheme
        Workload of requests to the cloud, and the scheme by which they are served.
    requests, warm_up_requests
        Number of counted requests, and number of warm-up requests that arrive before them. After
        the counted requests, at most as many requests arrive as in both groups together.
    seed
        Random seed. The same seed yields the same requests under any scheme.
    options
        Options of `play`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """
    requests = integer("requests", requests, 1, MAX_REQUESTS)
    warm_up_requests = integer("warm_up_requests", warm_up_requests, 0, MAX_REQUESTS)
    drawn = draw(workload, 2 * (warm_up_requests + requests), seed)
    plans = None
    if scheme.chunking == "planned":
        pilot = run_once(
            workload,
            Scheme(name="pilot", chunking="equation-3", rounds=scheme.rounds),
            requests=min(300, requests),
            seed=seed,
            warm_up_requests=min(100, warm_up_requests),
        )
        problems = [problem_of(workload, one, pilot.background_tokens) for one in drawn]
        found: list[Any] = [Geometric().run(one, Budget(one)).plan for one in problems]
        plans = [plan.chunks for plan in found]
    counted = warm_up_requests, warm_up_requests + requests
    return play(workload, scheme, drawn, plans=plans, counted=counted, seed=seed, **options)


def draw(workload: PromptWorkload, count: int, seed: int = 0) -> NDArray[Any]:
    """Draw the requests of a workload, and return them in order of arrival as kernel rows.

    The same seed yields the same requests for every scheme.
    """
    random = random_generator(seed)
    drawn = np.zeros(count, kernels.Request)
    drawn["arrival"] = np.cumsum(random.exponential(1.0 / workload.requests_per_second, count))
    drawn["prompt"] = workload.lengths(count, random)
    drawn["output"] = workload.output_tokens
    for name in ("uplink", "downlink"):
        low, high = getattr(workload, f"{name}_bytes_per_second").tolist()
        drawn[name] = random.uniform(low, high, count)
    drawn["draft_seconds"] = random.choice(workload.draft_seconds, count)
    return drawn


def problem_of(
    workload: PromptWorkload, request: Any, background_tokens: float
) -> PromptChunkingProblem:
    """Return the prompt-chunking problem of a single request.

    `background_tokens` is the mean number of tokens that other requests contribute to a batch.
    """
    return PromptChunkingProblem(
        prompt_tokens=int(request["prompt"]),
        uplink_bytes_per_second=float(request["uplink"]),
        downlink_bytes_per_second=float(request["downlink"]),
        background_tokens=workload.background_tokens + background_tokens,
        wait="overlap",
        **{name: getattr(workload, name) for name in _PROBLEM},
    )


def play(
    workload: PromptWorkload,
    scheme: Scheme,
    drawn: NDArray[Any],
    *,
    plans: Sequence[Sequence[int] | Ints] | None = None,
    counted: tuple[int, int] | None = None,
    seed: int = 0,
    wait: Wait = "none",
    download: Download = "all",
    log_batches: int = 0,
    policy: OwnPolicy | None = None,
) -> ChunkingRun:
    """Simulate the requests `drawn` under a scheme.

    Parameters
    ----------
    workload, scheme, seed
        As in `run_once`.
    drawn
        Requests in order of arrival, as rows returned by `draw`.
    plans
        Chunk sizes of each request, required if the scheme's chunking is "planned".
    counted
        Index of the first counted request, and index of the first request after the counted
        requests. None means that all requests are counted.
    wait
        How a chunk waits for requests outside the simulation, as in the event model of
        `prompt-chunking`. The waiting time is g(background)/P. Use "none" unless
        `background_tokens` represents other requests.
    download
        Which states of a prompt are downloaded: "all" states, or only the state of the "last"
        token.
    log_batches
        Maximum number of batches to log.
    policy
        Policy that cuts prompts in place of Eq. 3, or None.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan does not fit its prompt.
    """
    count = len(drawn)
    first, last = (0, count) if counted is None else counted
    asked, sizes = drawn.copy(), np.empty(0, np.int64)
    if scheme.chunking == "planned":
        if (
            plans is None
            or [sum(plan) for plan in plans] != drawn["prompt"].tolist()
            or min(map(min, plans)) < 1
        ):
            raise InvalidInput("plans: the chunks of each request must sum to its prompt tokens")
        chunks = np.array([len(plan) for plan in plans])
        asked["first_size"] = np.cumsum(chunks) - chunks
        sizes = np.concatenate(plans).astype(np.int64)
    is_last = one_of("download", download, ("all", "last")) == "last"
    serving = _serving(scheme, sizes, _WAITS.index(one_of("wait", wait, _WAITS)), is_last)
    progress, reached = np.zeros(count, kernels.Progress), np.zeros(count, kernels.Reached)
    reached["first"] = reached["last"] = math.nan
    log = np.zeros(integer("log_batches", log_batches, 0, MAX_REQUESTS), kernels.Batch)
    loop = kernels.play if policy is None else _twin(policy, workload, seed)
    delay = workload.cloud_delay
    cloud = kernels.Cloud(
        tokens=delay.tokens.copy(),
        seconds=delay.seconds.copy(),
        background=workload.background_tokens,
        stages=workload.pipeline_length,
    )
    edge = kernels.Edge(*(getattr(workload, name) for name in kernels.Edge._fields))
    begun = time.perf_counter()
    ended = loop(random_key(seed), first, last, asked, cloud, edge, serving, progress, reached, log)
    seconds = time.perf_counter() - begun
    asked, reached = asked[first:last], reached[first:last]
    number, ttft = max(1, ended.counted), reached["first"].copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        tbt = (reached["last"] - ttft) / (asked["output"] - 1)
    mean = ended.stage_seconds / number
    return ChunkingRun(
        prompt_tokens=asked["prompt"].copy(),
        ttft_seconds=ttft,
        tbt_seconds=tbt,
        mean_ttft_seconds=float(ttft.mean()),
        mean_tbt_seconds=float(tbt.mean()),
        ttft_seconds_of_95_percent=float(np.quantile(ttft, 0.95)),
        reached=reached,
        stage_seconds=float(mean),
        stage_seconds_std=math.sqrt(max(0.0, ended.squares / number - mean * mean)),
        batch_tokens=float(ended.tokens / number),
        background_tokens=float(ended.background / number),
        busy_share=float(ended.stage_seconds / ended.seconds) if ended.seconds > 0.0 else 0.0,
        batches=ended.counted,
        events=ended.events,
        seconds=seconds,
        log=log[: ended.batches],
    )


@dataclass(frozen=True)
class State:
    """The information that a policy receives when a device may send the next chunk of a prompt.

    Parameters
    ----------
    arrival_seconds, prompt_tokens
        Arrival time of the request in seconds, and its prompt length.
    chunk, left_tokens
        Number of chunks already sent, and number of tokens left in the prompt.
    uplink_bytes_per_second
        Uplink rate of the device, in bytes per second.
    equation_3_tokens
        Chunk size according to Eq. 3, in tokens.
    """

    arrival_seconds: float
    prompt_tokens: int
    chunk: int
    left_tokens: int
    uplink_bytes_per_second: float
    equation_3_tokens: int


def _twin(policy: OwnPolicy, workload: PromptWorkload, seed: int) -> Any:
    """Return a simulation loop in plain Python for a user-defined policy."""
    known: dict[tuple[float, int], int] = {}

    def size(serving: Any, request: Any, chunk: int, left: int, every: int) -> int:
        key = float(request.arrival), int(chunk)
        if key not in known:  # the loop asks for the same chunk again while it waits
            state = State(
                key[0],
                int(request.prompt),
                key[1],
                int(left),
                float(request.uplink),
                int(min(every, left)),
            )
            rule = (
                f"a number of tokens per chunk, from 1 to {left}",
                lambda found: found.ndim == 0 and 1 <= found <= left,
            )
            known[key] = int(decided(policy, state, rule))
        return known[key]

    return twin(policy, workload, seed, kernels.play, _chunk_size=size)


def _serving(scheme: Scheme, sizes: Ints, wait: int, last: bool) -> Any:
    """Return the kernel record that describes how requests are served."""
    law = scheme.rounds
    hits = np.zeros(len(law.sent)) if law.hit is None else law.hit
    columns = law.drafted, law.sent, law.gained, np.cumsum(law.probabilities), hits
    parallel = kernels.NEVER
    if scheme.parallel_drafting:
        steps = scheme.parallel_steps
        parallel = kernels.EQUATION_6 if steps is None else kernels.STEPS + steps
    return kernels.Serving(
        mode=_MODES.index(scheme.chunking),
        sizes=sizes,
        # only the server limits the tokens of a batch; no batch reaches 2**62
        batch_tokens=scheme.server_chunk_tokens if scheme.chunking == "server" else 2**62,
        wait=wait,
        last=last,
        rounds=np.array(list(zip(*columns, strict=True)), kernels.Round),
        parallel=parallel,
        parallel_cost=scheme.parallel_cost,
    )
