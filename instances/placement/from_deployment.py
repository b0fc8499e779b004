"""Conversion of a user's deployment into a `placement` problem.

The clients are identical, and the verifier units are copies of the user's verifier.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from specopt.instances.deployment.deployment import DRAFTS, Deployment
from specopt.instances.deployment.pieces import pieces_of
from specopt.instances.deployment.proposal import Given, Proposal
from specopt.instances.family import labelled
from specopt.instances.placement import FAMILIES
from specopt.instances.placement.one_unit import MeasuredPieces, best_length, places_of
from specopt.instances.placement.parts import spread
from specopt.models.errors import InvalidInput
from specopt.models.named import NamedPasses, NamedTrips
from specopt.models.pass_time import Which
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement.problem import DraftPool, PlacementProblem
from specopt.models.position_acceptance import PositionAcceptance

CLIENTS, SERVERS = "clients", "drafting servers"
SERVER_TRIP = 0.001
MEASURE = {
    "classes.acceptance": (
        "--acceptance FILE, two scrapes of an engine's /metrics, whose differences give the rate at"
        " each position"
    ),
    "classes.device_seconds_per_token": (
        "--device-runtimes TABLE, of `specopt measure` on the device; or JSON with 1 / "
        "(tokens per second of llama-bench -n)"
    ),
    "classes.round_trip_seconds": (
        "--link MBITS,RTT_MS: time to the first token of a one-token request from the device, minus"
        " that on the server; for its quantiles, use --set classes.round_trip_seconds={...}"
    ),
    "classes.clients": (
        "--clients N, the mean of the engine's running requests (vllm:num_requests_running)"
    ),
    "classes.min_tokens_per_second": "--tpot MS, the guaranteed time per output token",
    "classes.context_tokens": (
        "--trace FILE, a log of requests with the token counts of prompts and responses"
    ),
    "verifiers.memory_bytes": "--memory GB, the memory of the machine that verifies",
    "verifiers.reserved_share": (
        "--set verifiers.reserved_share=S, share of the engine's busy time in prefill steps"
    ),
    "classes.device_watts": (
        "--power IDLE,BUSY,DEVICE, the power of the device while it drafts, minus its idle power"
    ),
}


def placement(known: Deployment, seed: int) -> Proposal:
    """Return the problem of choosing verifier units and drafters for a deployment's clients.

    With a minimum rate, the problem is to minimise the number of units, the cost or the energy.
    Without a minimum rate, the problem is to maximise the goodput.

    Raises
    ------
    InvalidInput
        If the weights do not fit in memory, or if a minimum rate is required but missing.
    """
    (family,) = labelled(FAMILIES, "one-class")
    base: PlacementProblem = family.generate(seed=seed)
    fleet = known.fleet
    verify = known.verify
    draft = known.draft
    tpot = fleet.seconds_per_token
    price = fleet.price_per_second
    watts = fleet.watts
    if tpot is None and (price or watts):
        raise InvalidInput(
            f"{'--price' if price else '--power'}: expected --tpot MS as well, the maximum"
            " time per output token"
        )
    given, assumed = _clients(known, base)
    given |= {
        "verifiers.units": (
            (1, "one unit, without --tpot")
            if tpot is None
            else (fleet.clients or base.classes[0].clients, "as many as necessary")
        ),
        "verifiers.price_per_second": (
            (1.0, "fewest units") if tpot and not price else (price and price[0], "--price")
        ),
        "verifiers.idle_watts": (watts and watts[0], "--power"),
        "verifiers.busy_watts": (watts and watts[1], "--power"),
        "bits_per_draft_token": (
            float(math.ceil(math.log2(draft.exact.vocabulary))),
            "bits of a token number of --draft",
        ),
        "objective": _objective(known),
    }
    for machines, model, option in (
        ("verifiers", verify, "--verify"),
        ("drafters", draft, "--draft"),
    ):
        source = f"config of {model.name}"
        given |= {
            f"{machines}.name": (model.name, option),
            f"{machines}.weights_bytes": (model.weight_bytes, source),
            f"{machines}.kv_bytes_per_token": (model.kv_bytes_per_token, source),
        }
    memory = base.verifiers[0].memory_bytes if known.memory_bytes is None else known.memory_bytes
    if memory <= verify.weight_bytes:
        raise InvalidInput(
            f"--memory: expected more than {verify.weight_bytes / 1e9:g} GB, the size of the"
            f" weights of {verify.name}, got {memory / 1e9:g} GB"
        )
    if known.memory_bytes is not None:
        given["verifiers.memory_bytes"] = memory, "--memory"
    most = (
        DRAFTS
        if known.acceptance is None
        else min(2 * DRAFTS, known.acceptance.max_drafts or DRAFTS)
    )
    given["max_draft_tokens"] = most, f"{DRAFTS}, or as many as --acceptance covers"
    for name, (value, source, is_known) in measured(known, most).items():
        (given if is_known else assumed)[name] = value, source
    new_tokens = {2**k for k in range(11) if 2**k <= most} | {most + 1}
    given |= lines(known, new_tokens)
    if price and len(price) > 1:
        pool = DraftPool(name=SERVERS, units=1, memory_bytes=1.0, round_trip_seconds=NamedTrips({}))
        base = dataclasses.replace(base, draft_pools=(pool,))
        _servers(given, assumed, known, memory)
    unused = (
        []
        if known.trace is None
        else ["requests of the trace, except their contexts, because clients never pause"]
    )
    rough = Proposal.of(base, family, given, MEASURE, unused, assumed)
    judge = as_measured(known, rough)
    new_tokens = {best_length(judge, place).draft_tokens + 1 for place in places_of(judge)}
    (of,) = judge.classes
    given |= lines(known, {1, *new_tokens}, of.context_tokens)
    if price and len(price) > 1:
        _servers(given, assumed, known, memory)
    return Proposal.of(base, family, given, MEASURE, unused, assumed)


def _objective(known: Deployment) -> tuple[str, str]:
    fleet = known.fleet
    if fleet.seconds_per_token is None:
        return "goodput", "without --tpot"
    if fleet.watts and not fleet.price_per_second:
        return "energy", "--power"
    return "cost", "--price" if fleet.price_per_second else "fewest units, as there are no prices"


def _clients(known: Deployment, base: PlacementProblem) -> tuple[Given, Given]:
    """Return the known and the assumed values that concern the clients, with their sources."""
    fleet = known.fleet
    link = known.link
    trace = known.trace
    context = int(known.context(known.passes.times["verify"]))
    trip = {
        known.verify.name: (
            spread(
                0.03 if link is None or link.round_trip_seconds is None else link.round_trip_seconds
            ).tolist()
        )
    }
    assumed: Given = {
        "classes.context_tokens": (context, "middle of the measured range"),
        "classes.max_context_tokens": (2 * context, "twice context_tokens"),
        "classes.round_trip_seconds": (trip, "mean 30 ms, with a spread"),
        "classes.uplink_bits_per_second": (None, "ample"),
        "verifiers.reserved_share": (None, "0: prompts take no time"),
        "drafters.kind": (None, "sequential: a pass for every draft token"),
        "overlap": (None, "true: devices may draft ahead while the verifier works"),
        "classes.min_tokens_per_second": (None, "none"),
        "classes.device_watts": (
            base.classes[0].device_watts if fleet.watts else None,
            "typical of a phone",
        ),
    }
    given: Given = {"classes.name": (CLIENTS, "identical")}
    if fleet.clients is not None:
        given["classes.clients"] = fleet.clients, "--clients"
    if fleet.seconds_per_token is not None:
        given["classes.min_tokens_per_second"] = 1.0 / fleet.seconds_per_token, "--tpot"
    if link is not None:
        given["classes.uplink_bits_per_second"] = (
            link.bits_per_second,
            "--link, for each client separately",
        )
        if link.round_trip_seconds is not None:
            given["classes.round_trip_seconds"] = (
                trip,
                "--link, with a spread: 20 quantiles of R (0.9 - 0.1 log(1 - u))",
            )
    if trace is not None:
        longest = max(context, int((trace.input_tokens + trace.output_tokens).max()))
        given["classes.context_tokens"] = context, f"mean of {known.rows}, in the measured range"
        given["classes.max_context_tokens"] = longest, f"longest of {known.rows}"
    if fleet.watts and len(fleet.watts) > 2:
        given["classes.device_watts"] = fleet.watts[2], "--power"
    return given, assumed


def lines(known: Deployment, new_tokens: Iterable[int], context: float | None = None) -> Given:
    """Return problem fields that describe the passes of both models by lines.

    A line is a linear function, and the duration of a pass is the maximum over all lines; see
    `deployment.pieces`. The lines are fitted to passes with the given numbers of new tokens and the
    given context. If `context` is None, all measured contexts are used.
    """
    path, times = known.passes.path, known.passes.times
    contexts = None if context is None else (context,)
    target = pieces_of(times["verify"], sorted(new_tokens), contexts)
    small = pieces_of(times["draft"], (1,), contexts)
    return {
        "verifiers.passes": (target.passes.dump(), f"{path}: {target.text}"),
        "drafters.beside": ({known.verify.name: small.passes.dump()}, f"{path}: {small.text}"),
    }


def as_measured(known: Deployment, proposal: Proposal, which: Which = "fitted") -> PlacementProblem:
    """Return a copy of the problem whose pass times are measured rather than fitted.

    The judge evaluates plans for this copy. `which` selects the measured times or one of their
    confidence limits.
    """
    problem = proposal.problem
    assert isinstance(problem, PlacementProblem)
    limits = {
        name: (value, source)
        for name, (value, source, _) in measured(known, problem.max_draft_tokens, which).items()
        if not _is_set(proposal, name)
    }
    problem = Proposal.of(problem, proposal.family, limits, {}).problem
    assert isinstance(problem, PlacementProblem)
    (verifier,), (drafter,) = problem.verifiers, problem.drafters

    def tabled(field: str, name: str, lines: PassPieces) -> PassPieces:
        if _is_set(proposal, field):
            return lines
        return MeasuredPieces(lines.rows, known.passes.times[name], which)

    own: dict[str, Any] = {}
    for name, machines in (("beside", drafter.beside), ("server", drafter.server)):
        for machine, lines in (machines.values if machines else {}).items():
            own[name] = NamedPasses({machine: tabled(f"drafters.{name}", "draft", lines)})
    passes = tabled("verifiers.passes", "verify", verifier.passes)
    return dataclasses.replace(
        problem,
        verifiers=(dataclasses.replace(verifier, passes=passes),),
        drafters=(dataclasses.replace(drafter, **own),),
    )


def _is_set(proposal: Proposal, name: str) -> bool:
    """Return whether the user has set a field of the objects in a list, or the entire list."""
    return "--set" in (proposal.sources.get(name), proposal.sources.get(name.partition(".")[0]))


def measured(
    known: Deployment, most: int, which: Which = "fitted"
) -> dict[str, tuple[Any, str, bool]]:
    """Return the measured value, or a confidence limit, for two fields of the client class.

    The fields are the drafting time and the acceptance. Each entry is a tuple
    (value, source, whether the value is known). Lower limits of durations are
    combined with upper limits of acceptance, because both describe the best case.
    """
    draft = known.draft.name
    device = known.fleet.device
    times = (device or known.passes).times["draft"]
    rate: Any = 0.8
    if isinstance(known.acceptance, PositionAcceptance):
        of = {
            "fitted": known.acceptance.rates,
            "lower": known.acceptance.upper,
            "upper": known.acceptance.lower,
        }[which]
        rates = of[:most].tolist()
        rate = rates[0] if len(rates) == 1 else rates + rates[-1:] * (most - len(rates))
    elif known.acceptance is not None:
        rate = known.rate
    return {
        "classes.device_seconds_per_token": (
            {draft: known.seconds_per_token(times, which)},
            f"{known.passes.path}: assumed as fast as next to the verifier"
            if device is None
            else f"{device.path}: a pass of one token",
            device is not None,
        ),
        "classes.acceptance": (
            {draft: rate},
            "0.8 at every position (paper 1)" if known.acceptance is None else "--acceptance",
            known.acceptance is not None,
        ),
    }


def _servers(given: Given, assumed: Given, known: Deployment, memory: float) -> None:
    """Add the fields of drafting servers to the given and the assumed values.

    A drafting server is shared by many clients.
    """
    price = known.fleet.price_per_second or ()
    own = given["drafters.beside"][0][known.verify.name]
    like = "same as a machine that verifies"
    given |= {
        "draft_pools.units": given["verifiers.units"],
        "draft_pools.price_per_second": (price[1], "--price"),
    }
    assumed |= {
        "draft_pools.memory_bytes": (memory, like),
        "draft_pools.busy_watts": (given["verifiers.busy_watts"][0], like),
        "draft_pools.round_trip_seconds": (
            {known.verify.name: SERVER_TRIP},
            f"{1e3 * SERVER_TRIP:g} ms",
        ),
        "drafters.server": ({SERVERS: own}, like),
    }
