"""Long-run simulation of many devices that share one verifier.

A policy chooses every batch. A device thinks, then starts a response with a new prompt. Until the
response is complete, the device drafts a window, sends it, waits in the queue, has the window
verified in a batch, and receives the accepted tokens and the verifier's own token. The simulation
makes the following assumptions beyond the workload:

* The first verification of a response is cold: it computes the prompt and the window. A later
  verification reads the cached prefix and computes the window and the verifier's last token.
  Without a prefix cache, or after an eviction, every verification computes the whole prefix.
* The speed of a response is tokens / (last token received - response started), including the prompt
  and the network. A response violates its class if its speed is below tau. Its last window may
  yield fewer tokens than expected, because tokens beyond the response are cut off. Violations per
  iteration (Eq. 4) are reported separately. Such violations are far more frequent, because few
  accepted tokens make an iteration slow regardless of the verifier.
* Every device keeps its class. Classes are distributed evenly, so the class shares hold for any
  number of devices.
* Responses are counted if they start in the window after the warm-up. The simulation continues
  until they have ended. A response counts as a violation if it spans the whole window, or if it is
  unfinished at the end and certain to miss its speed.
* Centralised serving decodes one token of every pending response per batch on the verifier itself.
  The network delay occurs once for the request and once at the end.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import specopt.solvers.verification_batch.kernels.simulation as kernels
from specopt.models.arguments import boolean, integer, number, positive, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import Checked, Floats, Ints, Positive, describe
from specopt.models.pass_time import VerificationTime
from specopt.models.verification_batch.problem import VerificationBatchProblem
from specopt.models.verification_batch.workload import VerificationWorkload
from specopt.solvers.policy import Policy as OwnPolicy
from specopt.solvers.policy import as_policy, decided, settings_of, twin
from specopt.solvers.simulation import Estimate, Replications, Simulation, Tell, random_key
from specopt.solvers.verification_batch.policies import NAMED, Policy, PolicyName

MAX_DEVICES = 100_000
MAX_RESPONSES = 2_000_000  # rows of `LongRun.responses`
MAX_EVENTS = 10_000_000
MAX_SECONDS = 1e7
_GOLDEN = 0.6180339887498949
_ESTIMATES = {
    "violation_rate": "violation_rate",
    "goodput_tokens_per_second": "goodput",
    "on_time_tokens_per_second": "goodput_on_time",
    "busy_share": "busy_share",
    "cold_share": "cold_share",
    "wasted_share": "wasted_share",
}  # attribute of a run, by the name of its estimate in `ServiceSimulation`

OWN_RULE = Policy(name="fcfs")
"""Policy whose rule controls the cache if a user-defined policy chooses the batches."""


@dataclass(frozen=True, kw_only=True)
class Belief(Checked):
    """A policy's estimate of batch durations, and how its error changes over time.

    Parameters
    ----------
    estimator
        Initial estimator of the duration of a batch. None means that the policy always knows the
        true duration.
    calibrated
        Whether the estimator is updated from the observed durations of batches.
    slowdown
        Factor that multiplies the durations of all batches from the middle of the window on.
    """

    estimator: VerificationTime | None = None
    calibrated: bool = True
    slowdown: Positive = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class LongRun:
    """One simulated run of a policy, with the statistics of its window.

    Parameters
    ----------
    class_speeds
        Required token speed tau of every class, in tokens per second.
    class_responses, class_violations, class_mean_speed
        Number of counted responses, number of counted responses slower than tau, and mean speed
        (total tokens / total seconds), per class.
    goodput
        Number of tokens committed per second within the window.
    goodput_on_time
        `goodput` times the share of tokens in responses that reach their class's speed.
    iterations, iteration_violations, compute_dominant
        Three counts per class: the verifications within the window, the late verifications, and the
        late verifications whose batch is a spike (Eq. 21). A verification is late if it ends past
        the deadline of Eq. 12. Late verifications whose batch is no spike are queue-dominant.
    batches, busy_share, cold_share, wasted_share
        Number of batches within the window, share of the window in which the verifier is busy,
        share of verifications that are cold, and share of drafted tokens that were not accepted.
    stalled
        Whether the policy selected no request although every device was waiting.
    seconds
        Computing time in seconds, including the compilation at the first call.
    responses
        Counted responses, with the fields "device_class", "speed", "tokens", "start" and "seconds".
    events
        Logged iterations, up to the requested number. The fields are "batch", "device", "start" of
        the batch, "queued" seconds, "seconds" of the batch, "deadline", "ratio" to the moving mean
        (Eq. 21), and "late", which tells whether the deadline was missed.
    """

    class_speeds: Floats
    class_responses: Ints
    class_violations: Ints
    class_mean_speed: Floats
    goodput: float
    goodput_on_time: float
    iterations: Ints
    iteration_violations: Ints
    compute_dominant: Ints
    batches: int
    busy_share: float
    cold_share: float
    wasted_share: float
    stalled: bool
    seconds: float
    responses: NDArray[Any] = field(repr=False)
    events: NDArray[Any] = field(repr=False)

    @property
    def violation_rate(self) -> float:
        """Share of all responses that are slower than their class requires."""
        return float(self.class_violations.sum()) / max(1, int(self.class_responses.sum()))

    @property
    def class_violation_rate(self) -> Floats:
        """Share of responses that are slower than their class requires, per class."""
        rates: Floats = self.class_violations / np.maximum(1, self.class_responses)
        return rates


@dataclass(frozen=True, kw_only=True, eq=False)
class ServiceSimulation(Simulation):
    """The simulated results of a policy that serves a number of devices.

    `estimates` contains "violation_rate", "goodput_tokens_per_second", and the goodput in responses
    that are on time. It also contains the violation rate of every class, and the shares of busy
    time, cold verifications and wasted drafts.

    Parameters
    ----------
    options
        Options of the policy.
    devices, centralised
        Number of devices, and whether the verifier decodes alone, without drafts.
    class_speeds
        Required token speed tau of every class, in tokens per second.
    stalled
        Number of runs that ended because the policy selected no request although every device was
        waiting.
    runs
        Results of the runs, one per replication.
    """

    kind = VerificationBatchProblem.kind
    options: dict[str, Any]
    devices: int
    centralised: bool
    class_speeds: Floats
    stalled: int
    runs: tuple[LongRun, ...] = field(repr=False)

    @property
    def facts(self) -> dict[str, str]:
        """Descriptions of the devices and of stalled runs, for reports."""
        facts = {
            "devices": (
                f"{self.devices}, {self.devices / len(self.class_speeds):g} per class on average"
            )
        }
        if self.centralised:
            facts["decoding"] = "centralised, without drafts"
        if self.stalled:
            facts["stalled"] = (
                f"{self.stalled} of {self.replications} runs, in which no batch was formed although"
                " all devices waited"
            )
        return facts


def simulate(
    workload: VerificationWorkload,
    policy: Policy | OwnPolicy | PolicyName = "slack",
    *,
    seed: int = 0,
    replications: int = 5,
    callback: Tell | None = None,
    devices: int = 100,
    seconds: float = 240.0,
    warm_up_seconds: float = 60.0,
    centralised: bool = False,
) -> ServiceSimulation:
    """Simulate devices that share one verifier, in several independent runs.

    Parameters
    ----------
    workload, policy
        Workload of the verifier, and the policy that chooses batches. The policy is a name, a
        `Policy` of this module with options, or a user-defined `specopt.Policy`. The latter
        receives a `State`, returns the requests of the next batch as indices into this state, and
        learns from an `Outcome`.
    seed
        Seed of the first run. The other runs use consecutive seeds.
    replications
        Number of runs.
    callback
        Function called after every run with the number of completed runs and their mean violation
        rate.
    devices, seconds, warm_up_seconds, centralised
        Same as in `run_once`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """
    series = Replications(seed, replications, callback)
    chosen = as_policy(policy, NAMED, Policy, OwnPolicy)
    once = partial(
        run_once,
        workload,
        chosen,
        devices=devices,
        seconds=seconds,
        warm_up_seconds=warm_up_seconds,
        centralised=centralised,
    )
    runs, found = series.each(once, _ESTIMATES)
    late = np.array([run.class_violation_rate for run in runs]).T
    for speed, samples in zip(workload.class_speeds.tolist(), late, strict=True):
        found[f"violation_rate_of_class_{speed:g}"] = Estimate.of(samples)
    return series.result(
        ServiceSimulation,
        chosen.name,
        found,
        options=settings_of(chosen),
        devices=int(devices),
        centralised=centralised,
        class_speeds=workload.class_speeds,
        stalled=sum(run.stalled for run in runs),
        runs=runs,
    )


def run_once(
    workload: VerificationWorkload,
    policy: Policy | OwnPolicy | PolicyName = "slack",
    *,
    devices: int,
    seed: int = 0,
    seconds: float = 240.0,
    warm_up_seconds: float = 60.0,
    centralised: bool = False,
    belief: Belief = Belief(),
    events: int = 0,
) -> LongRun:
    """Simulate devices that share one verifier in a single run.

    Parameters
    ----------
    workload, policy, devices
        Workload of the verifier, the policy that chooses batches, and the number of devices.
    seed
        Random seed. With the same seed, a device's responses have the same prompts, lengths,
        acceptances and delays under any policy.
    seconds, warm_up_seconds
        Length of the window in which counted responses start, and length of the warm-up before the
        window, both in seconds.
    centralised
        Whether the verifier decodes alone, without drafts.
    belief
        The policy's estimate of the duration of a batch.
    events
        Number of iterations to log, starting with the first iteration within the window.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """
    begun = time.perf_counter()
    devices, seed = integer("devices", devices, 1, MAX_DEVICES), integer("seed", seed, 0)
    events = integer("events", events, 0, MAX_EVENTS)
    seconds = number("seconds", seconds, above=0, high=MAX_SECONDS)
    warm_up_seconds = number("warm_up_seconds", warm_up_seconds, 0, MAX_SECONDS)
    centralised = boolean("centralised", centralised)
    if not isinstance(belief, Belief):
        raise InvalidInput(f"belief: expected a Belief, got {describe(belief)}")
    chosen = as_policy(policy, NAMED, Policy, OwnPolicy)
    own = isinstance(chosen, OwnPolicy)
    by_class, totals = (
        np.zeros(len(workload.class_speeds), kernels.ByClass),
        np.zeros(1, kernels.Served),
    )
    # the number of responses is limited by how fast the devices can draft
    longest = min(MAX_RESPONSES, int(devices * (1.0 + (seconds + warm_up_seconds) / 0.05)))
    responses, log = np.empty(longest, kernels.Response), np.empty(events, kernels.Iteration)
    truth, rule = (
        (OWN_RULE if own else chosen).rule(
            estimator,
            workload.guard_seconds,
            workload.batch_memory_bytes,
            workload.kv_bytes_per_token,
        )
        for estimator in (workload.estimator, belief.estimator or workload.estimator)
    )
    cache_bytes = workload.cache_memory_bytes
    verifier = kernels.Verifier(
        costs=truth.costs,
        noise=math.sqrt(math.log1p(workload.time_noise**2)),
        slowdown=belief.slowdown,
        knows=belief.estimator is None,
        learns=own or (belief.estimator is not None and belief.calibrated),
        cache=workload.prefix_cache,
        cache_bytes=math.inf if cache_bytes is None else cache_bytes,
        central=centralised,
    )
    play = _twin(chosen, workload, seed) if own else kernels.play
    stalled = play(
        random_key(seed),
        warm_up_seconds,
        warm_up_seconds + seconds,
        rule,
        verifier,
        _devices(workload, devices, centralised),
        np.zeros(devices, kernels.Device),
        by_class,
        totals,
        responses,
        log,
    )
    served = totals[0]
    goodput = float(served["tokens"]) / seconds
    on_time = by_class["on_time_tokens"].sum() / max(1.0, by_class["tokens"].sum())
    return LongRun(
        class_speeds=workload.class_speeds,
        class_responses=by_class["responses"],
        class_violations=by_class["violations"],
        class_mean_speed=by_class["tokens"] / np.maximum(by_class["seconds"], 1e-300),
        goodput=goodput,
        goodput_on_time=float(goodput * on_time),
        iterations=by_class["iterations"],
        iteration_violations=by_class["late"],
        compute_dominant=by_class["late_in_spikes"],
        batches=int(served["batches"]),
        busy_share=float(served["busy_seconds"] / seconds),
        cold_share=float(served["cold"] / max(1, by_class["iterations"].sum())),
        wasted_share=float(served["wasted"] / max(1, served["drafted"])),
        stalled=bool(stalled),
        seconds=time.perf_counter() - begun,
        responses=responses[: served["responses"]].copy(),
        events=log[: served["logged"]],
    )


@dataclass(frozen=True)
class State:
    """The information that a policy receives when the verifier is free.

    Parameters
    ----------
    now_seconds
        Current time, in seconds.
    expected_tokens, new_tokens, cached_tokens
        Numbers of tokens of every waiting request, in order of arrival.
    deadline_seconds, due_seconds
        Deadline of each request's iteration (Eq. 12), and time by which the request's response is
        due at the speed of its class, both in seconds.
    memory_bytes, kv_bytes_per_token
        Memory available for a batch (infinity means unlimited), and memory per token, both in
        bytes. A request occupies memory for its new and cached tokens.
    estimator
        Coefficients a, b_compute, b_read and c of Eq. 18-19.
    """

    now_seconds: float
    expected_tokens: Floats
    new_tokens: Floats
    cached_tokens: Floats
    deadline_seconds: Floats
    due_seconds: Floats
    memory_bytes: float
    kv_bytes_per_token: float
    estimator: Floats


@dataclass(frozen=True)
class Outcome:
    """The information that a policy receives after a batch: the batch's duration in seconds."""

    seconds: float


def _twin(policy: OwnPolicy, workload: VerificationWorkload, seed: int) -> Any:
    """Return a simulation loop in plain Python for a user-defined policy."""

    def choose(now: float, rule: Any, pending: Any, room: Any, batch: Any) -> int:
        known = [array.copy() for array in pending[:5]]
        given: Any = (*known, rule.memory, rule.bytes_per_token, rule.costs.copy())
        state = State(now, *given)
        places = np.arange(len(pending.value))
        found = decided(
            policy,
            state,
            (
                f"distinct indices of the {len(places)} requests",
                lambda found: found.ndim == 1 and len(np.intersect1d(found, places)) == len(found),
            ),
            (
                f"requests that fit into {rule.memory:.6g} bytes",
                lambda found: (
                    rule.bytes_per_token * float((pending.new + pending.cached)[found].sum())
                    <= rule.memory
                ),
            ),
        )
        batch[: len(found)] = found
        return len(found)

    def calibrate(costs: Floats, learned: Any, work: Floats, seconds: float) -> None:
        policy.learn(Outcome(seconds))

    return twin(policy, workload, seed, kernels.play, choose=choose, calibrate=calibrate)


def _devices(workload: VerificationWorkload, count: int, centralised: bool) -> Any:
    """Return the kernel record of the devices.

    Devices draft nothing if the verifier decodes alone.
    """
    drafts = not centralised
    predictor = workload.predictor if drafts else None
    return kernels.Devices(
        class_of=device_classes(workload, count),
        speed=workload.class_speeds.copy(),
        acceptance=workload.acceptance_rates.copy() if drafts else np.empty(0),
        expected=workload.expected_tokens.copy() if drafts else np.ones(1),
        predictor=kernels.Predictor(
            predictor is not None, *(dataclasses.astuple(predictor) if predictor else (0.0,) * 3)
        ),
        prompt=kernels.Lengths(
            workload.prompt_median_tokens,
            workload.prompt_sigma,
            float(workload.most_prompt_tokens),
        ),
        response=kernels.Lengths(
            workload.response_median_tokens,
            workload.response_sigma,
            float(workload.most_response_tokens),
        ),
        draft=1.0 / workload.draft_tokens_per_second,
        up=workload.uplink_seconds,
        down=workload.downlink_seconds,
        jitter=workload.jitter_seconds,
        think=workload.think_seconds,
    )


def capacity(
    workload: VerificationWorkload,
    policy: Policy | PolicyName = "slack",
    *,
    violation_rate: float = 0.01,
    seeds: Iterable[int] = range(5),
    resolution: float = 0.01,
    most: int = 4096,
    **options: Any,
) -> Estimate:
    """Return the number of devices that a policy can serve within a violation rate (Eq. 20).

    For each seed, the number of devices is doubled and then bisected. The violation rate need not
    increase with every additional device. The search ends at a number of devices with an acceptable
    violation rate that is close to a larger number with too high a rate.

    Parameters
    ----------
    workload, policy
        Same as in `run_once`.
    violation_rate
        Largest allowed share epsilon of responses that are slower than their class requires.
    seeds
        Random seeds. One search is run for each seed.
    resolution
        Relative distance between the acceptable number and the larger number of devices at which a
        search ends. The distance is at least one device.
    most
        Maximum number of devices to try.
    options
        Options of `run_once`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """
    all_seeds = sequence("seeds", list(seeds) if isinstance(seeds, range) else seeds)
    if not all_seeds:
        raise InvalidInput("seeds: expected at least one seed, got none")
    violation_rate = number("violation_rate", violation_rate, 0, below=1)
    resolution, most = positive("resolution", resolution), integer("most", most, 1, MAX_DEVICES)

    def carries(devices: int, seed: int) -> bool:
        run = run_once(workload, policy, devices=devices, seed=seed, **options)
        return run.violation_rate <= violation_rate and not run.stalled

    def carried(seed: int) -> int:
        low, high = 0, 8
        while high <= most and carries(high, seed):
            low, high = high, 2 * high
        high = min(high, most + 1)
        while high - low > max(1.0, resolution * low):
            middle = (low + high) // 2
            if carries(middle, seed):
                low = middle
            else:
                high = middle
        return low

    return Estimate.of([carried(seed) for seed in all_seeds])


def device_classes(workload: VerificationWorkload, devices: int) -> Ints:
    """Return the class of every device.

    For every n, the first n devices have the class shares of the workload, up to rounding.
    """
    places = np.modf((np.arange(devices) + 0.5) * _GOLDEN)[0]
    found = np.searchsorted(np.cumsum(workload.class_shares), places, side="right")
    classes: Ints = np.minimum(found, len(workload.class_shares) - 1).astype(np.int64)
    return classes
