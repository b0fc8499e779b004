"""Prefill and decoding of many devices on one cloud pipeline: TTFT, TBT, in-cloud delay and compliance with SLAs.

What the simulation assumes beyond the event model of `prompt-chunking`:

* Batching is continuous: whenever the first stage is free, everything that waits there enters one batch, but at most
  one chunk of a prompt. A batch takes g(its tokens)/P per stage, so other requests are what mu stands for.
* A round of decoding drafts, computes the shallow states of what it sends, crosses the link, takes part in one batch
  and comes back; all tokens of a round appear at once. TBT of a request is (last - first token)/(tokens - 1).
* "equation-3" takes mu from the moving average of the batches so far (Eq. 1), and g as it is. Where Eq. 3 has no root
  the prompt is one chunk.
* "server" is U-Sarathi: one message, chunks of a common token budget per batch, nothing comes back before the prompt
  is complete.
* Requests that count come after the warm-up; more arrive until all of those have ended.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from specopt.models.arguments import integer, number, one_of, random_generator
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.prompt_chunking import Download, PromptChunkingProblem
from specopt.models.prompt_workload import PromptWorkload, Scheme
from specopt.solvers.policy import Policy as OwnPolicy
from specopt.solvers.policy import plain, refused
from specopt.solvers.prompt_chunking.schemes import as_scheme
from specopt.solvers.simulation import Estimate, Simulation, Tell, random_key

Planner = Callable[[PromptChunkingProblem], Sequence[int] | Ints]

MAX_REQUESTS = 1_000_000
MAX_RUNS = 100_000
_MODES = {"planned": 0, "equation-3": 1, "whole": 0, "server": 2}
Phase = Literal["prefill", "decode"]
Wait = Literal["none", "serial", "overlap"]
_WAITS: dict[Wait, int] = {"none": 0, "serial": 1, "overlap": 2}


@dataclass(frozen=True, kw_only=True, eq=False)
class Requests:
    """The requests of a run, drawn before it: the same for every scheme.

    Parameters
    ----------
    arrival_seconds, prompt_tokens, output_tokens
        When each arrives, and its lengths, in order of arrival.
    uplink_bytes_per_second, downlink_bytes_per_second, draft_seconds
        Its link and device.
    """

    arrival_seconds: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    uplink_bytes_per_second: Floats
    downlink_bytes_per_second: Floats
    draft_seconds: Floats

    @classmethod
    def draw(cls, workload: PromptWorkload, count: int, seed: int = 0) -> Requests:
        """Draw requests of a workload."""
        random = random_generator(seed)
        up, down = workload.uplink_bytes_per_second.tolist(), workload.downlink_bytes_per_second.tolist()
        return cls(
            arrival_seconds=np.cumsum(random.exponential(1.0 / workload.requests_per_second, count)),
            prompt_tokens=workload.lengths(count, random),
            output_tokens=np.full(count, workload.output_tokens, np.int64),
            uplink_bytes_per_second=random.uniform(up[0], up[1], count),
            downlink_bytes_per_second=random.uniform(down[0], down[1], count),
            draft_seconds=random.choice(workload.draft_seconds, count),
        )

    def problem(self, workload: PromptWorkload, index: int, background_tokens: float, wait: str) -> Any:
        """Return the prompt-chunking problem of one request among other requests of given tokens per batch."""
        return PromptChunkingProblem(
            prompt_tokens=int(self.prompt_tokens[index]),
            bytes_per_token=workload.bytes_per_token,
            uplink_bytes_per_second=float(self.uplink_bytes_per_second[index]),
            downlink_bytes_per_second=float(self.downlink_bytes_per_second[index]),
            cloud_delay=workload.cloud_delay,
            background_tokens=workload.background_tokens + background_tokens,
            pipeline_length=workload.pipeline_length,
            local_overhead_seconds=workload.local_overhead_seconds,
            local_seconds_per_token=workload.local_seconds_per_token,
            message_overhead_seconds=workload.message_overhead_seconds,
            link_latency_seconds=workload.link_latency_seconds,
            head_seconds=workload.head_seconds,
            wait=wait,  # type: ignore[arg-type]  # checked by the problem
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ChunkingRun:
    """What happened while a scheme served a workload.

    Parameters
    ----------
    scheme, seed
        What was simulated.
    prompt_tokens, ttft_seconds, tbt_seconds
        By request that counts; TBT is NaN for responses of one token, and both are if the run ended before.
    chunks, rounds, hidden_steps
        By request: chunks processed, rounds of decoding, draft steps that parallel drafting has taken off them.
    stage_seconds, stage_seconds_std
        Mean and standard deviation of the time of a batch on one GPU (Fig. 8).
    batch_tokens, background_tokens
        Mean tokens of a batch, and the mean of mu as Eq. 1 sees it.
    chunk_cloud_seconds, chunk_cloud_seconds_std, round_cloud_seconds, round_cloud_seconds_std
        Mean and standard deviation of the time from arrival in the cloud to leaving the last stage.
    busy_share
        Share of time in which the first stage works.
    batches, events, seconds
        Batches that count, all events, computing time without planning and compilation.
    log
        The first batches: "start", "prompt_tokens", "round_tokens", and "seconds" per stage.
    """

    scheme: Scheme
    seed: int
    prompt_tokens: Ints = field(repr=False)
    ttft_seconds: Floats = field(repr=False)
    tbt_seconds: Floats = field(repr=False)
    chunks: Ints = field(repr=False)
    rounds: Ints = field(repr=False)
    hidden_steps: Ints = field(repr=False)
    stage_seconds: float
    stage_seconds_std: float
    batch_tokens: float
    background_tokens: float
    chunk_cloud_seconds: float
    chunk_cloud_seconds_std: float
    round_cloud_seconds: float
    round_cloud_seconds_std: float
    busy_share: float
    batches: int
    events: int
    seconds: float
    log: NDArray[Any] = field(repr=False)

    @property
    def mean_ttft_seconds(self) -> float:
        """TTFT, the mean over requests."""
        return float(self.ttft_seconds.mean())

    @property
    def mean_tbt_seconds(self) -> float:
        """TBT, the mean over requests."""
        return float(self.tbt_seconds.mean())

    def compliance(self, phase: Phase, limit_seconds: float | Floats) -> Floats:
        """Return the share of requests within a limit: seconds per 128 prompt tokens, or per 10 tokens of decoding.

        A prompt of N tokens has ceil(N / 128) times the limit.
        """
        delays = np.sort(self._sla_seconds(phase))
        found: Floats = np.searchsorted(delays, np.asarray(limit_seconds) * (1.0 + 1e-12), side="right") / len(delays)
        return found

    def sla_seconds(self, phase: Phase, share: float) -> float:
        """Return the limit that a share of the requests keeps."""
        return float(np.quantile(self._sla_seconds(phase), share, method="inverted_cdf"))

    def _sla_seconds(self, phase: str) -> Floats:
        if phase not in ("prefill", "decode"):
            raise InvalidInput(f"phase: expected 'prefill' or 'decode', got {describe(phase)}")
        if phase == "decode":
            return 10.0 * self.tbt_seconds
        parts: Floats = self.ttft_seconds / np.ceil(self.prompt_tokens / 128.0)
        return parts


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptSimulation(Simulation):
    """What a scheme reaches, run by run.

    `estimates` are the means over requests of TTFT ("ttft_seconds") and TBT ("tbt_seconds"), the TTFT that 95 % of the
    requests keep, and what the cloud does.

    Parameters
    ----------
    scheme
        What was simulated.
    requests, warm_up_requests
        Of every run: those that count, and those before them.
    runs
        By replication.
    """

    kind = PromptChunkingProblem.kind
    scheme: Scheme
    requests: int
    warm_up_requests: int
    runs: tuple[ChunkingRun, ...] = field(repr=False)

    @property
    def facts(self) -> dict[str, str]:
        """How many requests."""
        return {"requests": f"{self.requests} per replication, after {self.warm_up_requests} that do not count"}

    @property
    def mean_ttft_seconds(self) -> float:
        """Time to the first token."""
        return self.estimates["ttft_seconds"].mean

    @property
    def mean_tbt_seconds(self) -> float:
        """Time between tokens."""
        return self.estimates["tbt_seconds"].mean

    @property
    def stage_seconds(self) -> float:
        """Computation per GPU and batch."""
        return self.estimates["stage_seconds"].mean

    @property
    def stage_seconds_std(self) -> float:
        """Its standard deviation within a run."""
        return statistics.fmean(run.stage_seconds_std for run in self.runs)

    def compliance(self, phase: Phase, limit_seconds: float | Floats) -> Floats:
        """Return the share of requests within a limit; see `ChunkingRun.compliance`."""
        return np.mean([run.compliance(phase, limit_seconds) for run in self.runs], axis=0)  # type: ignore[no-any-return]

    def sla_seconds(self, phase: Phase, share: float) -> float:
        """Return the limit that a share of the requests keeps; see `ChunkingRun.sla_seconds`."""
        return statistics.fmean(run.sla_seconds(phase, share) for run in self.runs)


def simulate(
    workload: PromptWorkload,
    policy: Scheme | OwnPolicy | str = "hat",
    *,
    seed: int = 0,
    replications: int = 5,
    callback: Tell | None = None,
    requests: int = 1000,
    warm_up_requests: int = 200,
    planner: Planner | None = None,
    planner_background_tokens: float | None = None,
    smoothing: float = 0.8,
    wait: Wait = "none",
    download: Download = "all",
) -> PromptSimulation:
    """Simulate requests until those that count are complete, several times.

    Parameters
    ----------
    workload, policy
        What is asked of the cloud, and how it is served: a scheme, its name, or a `specopt.Policy` that cuts prompts in
        place of Eq. 3 of "hat". The policy is given a `State` and returns the tokens of the next chunk.
    seed
        Of the first run; the others follow.
    replications
        How many runs.
    callback
        Called after every run with the runs done and their mean TTFT.
    requests, warm_up_requests, planner, planner_background_tokens, smoothing, wait, download
        As in `run_once`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan does not fit its prompt.
    """
    begun = time.perf_counter()
    seed, replications = integer("seed", seed, 0), integer("replications", replications, 1, MAX_RUNS)
    own = policy if isinstance(policy, OwnPolicy) else None
    scheme = as_scheme(workload, "hat" if isinstance(policy, OwnPolicy) else policy)
    runs: list[ChunkingRun] = []
    for following in range(seed, seed + replications):
        runs.append(
            run_once(
                workload, scheme, requests=requests, seed=following, warm_up_requests=warm_up_requests,
                planner=planner, planner_background_tokens=planner_background_tokens, smoothing=smoothing, wait=wait,
                download=download, policy=own,
            )
        )  # fmt: skip
        if callback is not None:
            callback(len(runs), statistics.fmean(run.mean_ttft_seconds for run in runs))
    figures = {
        "ttft_seconds": [run.mean_ttft_seconds for run in runs],
        "tbt_seconds": [run.mean_tbt_seconds for run in runs],
        "ttft_seconds_of_95_percent": [float(np.quantile(run.ttft_seconds, 0.95)) for run in runs],
        "stage_seconds": [run.stage_seconds for run in runs],
        "batch_tokens": [run.batch_tokens for run in runs],
        "busy_share": [run.busy_share for run in runs],
    }
    return PromptSimulation(
        policy=scheme.name if own is None else own.name,
        replications=replications,
        seed=seed,
        estimates={name: Estimate.of(values) for name, values in figures.items()},
        seconds=time.perf_counter() - begun,
        scheme=scheme,
        requests=int(requests),
        warm_up_requests=int(warm_up_requests),
        runs=tuple(runs),
    )


def run_once(
    workload: PromptWorkload,
    scheme: Scheme,
    *,
    requests: int = 1000,
    seed: int = 0,
    warm_up_requests: int = 200,
    planner: Planner | None = None,
    planner_background_tokens: float | None = None,
    smoothing: float = 0.8,
    wait: Wait = "none",
    download: Download = "all",
    log_batches: int = 0,
    policy: OwnPolicy | None = None,
) -> ChunkingRun:
    """Simulate drawn requests until those that count are complete.

    Parameters
    ----------
    workload, scheme
        What is asked of the cloud, and how it is served.
    requests, warm_up_requests
        Requests that count, and those before them; as many as both together may arrive after them.
    seed
        The same seed gives the same requests under any scheme.
    planner
        For schemes whose chunking is "planned": chunk sizes for a problem; None: the method ``geometric``.
    planner_background_tokens
        mu of the problems that the planner gets; None: the mean under "equation-3", from a run before.
    smoothing
        alpha of Eq. 1.
    wait
        What a chunk waits for besides the batches of the run: g(background)/P as in the event model of
        `prompt-chunking`. "none" unless `background_tokens` stands for other requests.
    download
        Whether all states of a prompt come back, or those of the last token.
    log_batches
        How many batches to log.
    policy
        What cuts prompts in the place of Eq. 3; None: nothing.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan does not fit its prompt.
    """
    requests = integer("requests", requests, 1, MAX_REQUESTS)
    warm_up_requests = integer("warm_up_requests", warm_up_requests, 0, MAX_REQUESTS)
    seed = integer("seed", seed, 0)
    drawn = Requests.draw(workload, 2 * (warm_up_requests + requests), seed)
    plans = None
    if scheme.chunking == "planned":
        if planner_background_tokens is None:
            pilot = Scheme(name="pilot", chunking="equation-3", rounds=scheme.rounds)
            planner_background_tokens = run_once(
                workload, pilot, requests=min(300, requests), seed=seed, warm_up_requests=min(100, warm_up_requests)
            ).background_tokens
        plan = geometric_chunks if planner is None else planner
        count = len(drawn.prompt_tokens)
        plans = [plan(drawn.problem(workload, i, planner_background_tokens, "overlap")) for i in range(count)]
    return play(
        workload, scheme, drawn, plans=plans, counted=(warm_up_requests, warm_up_requests + requests), seed=seed,
        smoothing=smoothing, wait=wait, download=download, log_batches=log_batches, policy=policy,
    )  # fmt: skip


def play(
    workload: PromptWorkload,
    scheme: Scheme,
    requests: Requests,
    *,
    plans: Sequence[Sequence[int] | Ints] | None = None,
    counted: tuple[int, int] | None = None,
    seed: int = 0,
    smoothing: float = 0.8,
    wait: Wait = "none",
    download: Download = "all",
    log_batches: int = 0,
    policy: OwnPolicy | None = None,
) -> ChunkingRun:
    """Simulate given requests, with given plans if the scheme's chunking is "planned".

    Parameters
    ----------
    workload, scheme, seed, smoothing, wait, download, log_batches, policy
        As in `run_once`.
    requests
        Who arrives when, and with what.
    plans
        Chunk sizes by request.
    counted
        First request that counts and the first after it that does not; None: all.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or a plan does not fit its prompt.
    """
    count = len(requests.prompt_tokens)
    first, last = (0, count) if counted is None else counted
    if not 0 <= first < last <= count:
        raise InvalidInput(f"counted: expected a range of requests from 0 to {count}, got {describe(counted)}")
    smoothing = number("smoothing", smoothing, 0, 1)
    wait = one_of("wait", wait, _WAITS)
    download = one_of("download", download, ("all", "last"))
    seed, log_batches = integer("seed", seed, 0), integer("log_batches", log_batches, 0, MAX_REQUESTS)
    firsts, sizes = _flat(scheme, requests.prompt_tokens, plans)
    kernels = _kernels()
    reached = _table(kernels.Reached, count, first=math.nan, last=math.nan, chunks=0, rounds=0, hidden=0)
    sums, log = np.zeros(3, kernels.Sums), np.zeros(log_batches, kernels.Batch)
    serving = _serving(scheme, sizes, _WAITS[wait], download == "last")
    begun = time.perf_counter()
    world = *_world(workload, requests, firsts, smoothing), serving, reached, sums, log
    if policy is None:
        ended = kernels.play(random_key(seed), first, last, *world)
    else:
        policy.start(workload, seed)
        ended = _play_own(policy, random_key(seed), first, last, *world)
    seconds = time.perf_counter() - begun
    reached = reached[first:last]
    responses = requests.output_tokens[first:last]
    with np.errstate(invalid="ignore", divide="ignore"):
        between = (reached["last"] - reached["first"]) / (responses - 1)
    return ChunkingRun(
        scheme=scheme,
        seed=seed,
        prompt_tokens=requests.prompt_tokens[first:last],
        ttft_seconds=reached["first"].copy(),
        tbt_seconds=between,
        chunks=reached["chunks"].copy(),
        rounds=reached["rounds"].copy(),
        hidden_steps=reached["hidden"].copy(),
        events=ended.events,
        seconds=seconds,
        log=log[: ended.batches],
        **_summed(sums, ended),
    )


def _summed(sums: Any, ended: Any) -> dict[str, Any]:
    """Return the fields of a run that the kernel's sums over batches, chunks and rounds give."""
    batches = sums[_kernels().BATCHES]
    count = max(1, batches["count"])
    means = {
        "batch_tokens": float(batches["tokens"] / count),
        "background_tokens": float(ended.background / count),
        "busy_share": float(batches["seconds"] / ended.seconds) if ended.seconds > 0.0 else 0.0,
        "batches": int(batches["count"]),
    }
    for name, one in zip(("stage_seconds", "chunk_cloud_seconds", "round_cloud_seconds"), sums, strict=True):
        means[name], means[f"{name}_std"] = _moments(one)
    return means


def _world(workload: PromptWorkload, requests: Requests, firsts: Ints, smoothing: float) -> tuple[Any, Any, Any]:
    """Return the kernel's records of the requests, the cloud and the devices."""
    kernels, delay = _kernels(), workload.cloud_delay
    asked = _table(
        kernels.Request, len(firsts), arrival=requests.arrival_seconds, prompt=requests.prompt_tokens,
        output=requests.output_tokens, uplink=requests.uplink_bytes_per_second,
        downlink=requests.downlink_bytes_per_second, draft_seconds=requests.draft_seconds, first_size=firsts,
    )  # fmt: skip
    cloud = kernels.Cloud(
        tokens=delay.tokens.copy(),
        seconds=delay.seconds.copy(),
        background=workload.background_tokens,
        stages=workload.pipeline_length,
        smoothing=smoothing,
    )
    edge = kernels.Edge(
        token_bytes=workload.bytes_per_token,
        chunk=workload.local_overhead_seconds,
        token=workload.local_seconds_per_token,
        message=workload.message_overhead_seconds,
        latency=workload.link_latency_seconds,
        head=workload.head_seconds,
    )
    return asked, cloud, edge


def geometric_chunks(problem: PromptChunkingProblem) -> Ints:
    """Return the chunks of the method ``geometric``."""
    from specopt.solvers.budget import Budget
    from specopt.solvers.prompt_chunking.baselines import Geometric

    plan: Any = Geometric().run(problem, Budget(problem)).plan
    chunks: Ints = plan.chunks
    return chunks


@dataclass(frozen=True)
class State:
    """What a policy sees when a device may send the next chunk of a prompt.

    Parameters
    ----------
    arrival_seconds, prompt_tokens
        Of the request.
    chunk, left_tokens
        Chunks that were sent, and what is left of the prompt.
    uplink_bytes_per_second
        Of the device.
    equation_3_tokens
        The chunk that Eq. 3 gives.
    """

    arrival_seconds: float
    prompt_tokens: int
    chunk: int
    left_tokens: int
    uplink_bytes_per_second: float
    equation_3_tokens: int


def _play_own(policy: OwnPolicy, *arguments: Any) -> Any:
    """Run the event loop as plain Python, around a policy of one's own."""
    decided: dict[tuple[float, int], int] = {}

    def size(serving: Any, request: Any, chunk: int, left: int, every: int) -> int:
        key = float(request.arrival), int(chunk)
        if key not in decided:  # the loop asks when a chunk leaves, and when it arrives
            state = State(key[0], int(request.prompt), key[1], int(left), float(request.uplink), int(min(every, left)))
            found = policy.decide(state)
            if not isinstance(found, int | np.integer) or not 1 <= found <= left:
                raise refused(policy, f"tokens of a chunk, from 1 to {left}", found)
            decided[key] = int(found)
        return decided[key]

    given = [one.view(np.recarray) if isinstance(one, np.ndarray) and one.dtype.names else one for one in arguments]
    serving = given[-4]
    given[-4] = serving._replace(rounds=serving.rounds.view(np.recarray))
    with np.errstate(over="ignore"):  # of random numbers
        return plain(_kernels().play, {"_chunk_size": size})(*given)


def warm_up() -> None:
    """Load the kernel, so that no later call compiles."""
    _kernels().play.prepare()


def _flat(scheme: Scheme, prompt_tokens: Ints, plans: Sequence[Sequence[int] | Ints] | None) -> tuple[Ints, Ints]:
    """Return all plans in one column, and where each begins."""
    count = len(prompt_tokens)
    if scheme.chunking != "planned":
        # one chunk per prompt; of no use where Eq. 3 or the server chunk
        return np.arange(count), prompt_tokens.astype(np.int64)
    if plans is None or len(plans) != count:
        raise InvalidInput(f"plans: expected {count}, one per request, got {0 if plans is None else len(plans)}")
    columns = [np.asarray(plan, np.int64) for plan in plans]
    for index, (column, prompt) in enumerate(zip(columns, prompt_tokens.tolist(), strict=True)):
        if column.ndim != 1 or not len(column) or column.min() < 1 or column.sum() != prompt:
            raise InvalidInput(f"plans[{index}]: expected chunks >= 1 that sum to {prompt}, got {describe(column)}")
    chunks = np.array([len(column) for column in columns])
    return np.cumsum(chunks) - chunks, np.concatenate(columns)


def _serving(scheme: Scheme, sizes: Ints, wait: int, last: bool) -> Any:
    """Return the kernel's record of how requests are served."""
    kernels, rounds = _kernels(), scheme.rounds
    parallel = kernels.NEVER
    if scheme.parallel_drafting:
        steps = scheme.parallel_steps
        parallel = kernels.EQUATION_6 if steps is None else kernels.STEPS + steps
    return kernels.Serving(
        mode=_MODES[scheme.chunking],
        sizes=sizes,
        server_chunk=scheme.server_chunk_tokens,
        wait=wait,
        last=last,
        rounds=_table(
            kernels.Round, len(rounds.sent), drafted=rounds.drafted, sent=rounds.sent, gained=rounds.gained,
            up_to=np.cumsum(rounds.probabilities), hit=0.0 if rounds.hit is None else rounds.hit,
        ),
        parallel=parallel,
        parallel_cost=scheme.parallel_cost,
    )  # fmt: skip


def _table(kind: np.dtype[Any], count: int, **columns: Any) -> NDArray[Any]:
    """Return rows of named columns."""
    found = np.empty(count, kind)
    for name, column in columns.items():
        found[name] = column
    return found


def _moments(sums: Any) -> tuple[float, float]:
    """Return mean and standard deviation from number, sum and sum of squares."""
    count = max(1, sums["count"])
    mean = float(sums["seconds"]) / count
    return float(mean), math.sqrt(max(0.0, float(sums["squares"]) / count - mean * mean))


@cache
def _kernels() -> ModuleType:
    """Import the kernels on first use."""
    import specopt.solvers._kernels.prompt_chunking_simulation as kernels

    return kernels
