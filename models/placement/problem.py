"""Placement: where drafts are made, which drafters make them, and how many units are used.

A *unit* is one machine of a given type. Every unit of a verifier serves clients of one or more
classes in continuous batches. The drafts of a client come from a drafter next to the verifier, from
the client's device, or from a pool of drafting servers. A client may also be served without drafts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    ByName,
    Checked,
    Given,
    HalfOpenUnit,
    NonNegative,
    NonNegativeInt,
    Objects,
    Positive,
    PositiveInt,
    SomeObjects,
    check,
    empty,
    optional,
    required,
)
from specopt.models.named import NamedPasses, NamedRates, NamedSeconds, NamedTrips
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement.plan import PlacementPlan, Served, UnitGroup
from specopt.models.placement.unit import Cycles, Entry, cycles
from specopt.models.problem import ROUNDING, Evaluation, Problem, Sense, exceeds

Objective = Literal["goodput", "fair", "capacity", "cost", "energy"]

LABELS = {
    "goodput": "weighted tokens per second",
    "fair": "sum of weighted logarithms of tokens per second",
    "capacity": "share of the clients served",
    "cost": "price per second",
    "energy": "watts",
}
"""Label of each objective in tables and pictures."""

LONGEST_PASS, LONGEST_TRIP = 100.0, 60.0
"""Maximum duration of a pass of one token and of a round trip, in seconds. Larger values are
probably in milliseconds.
"""

Name = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Verifier:
    """Identical units that run the large model.

    Parameters
    ----------
    name
        Name of the verifier.
    units
        Number of available units.
    memory_bytes
        Memory of each unit.
    weights_bytes
        Size of the model's weights on each unit.
    kv_bytes_per_token
        Size of the KV cache per token.
    passes
        Duration of a pass.
    reserved_share
        Share of the time of every pass that is reserved for prompts.
    price_per_second
        Price per second of each unit in use.
    idle_watts
        Power of a unit in use when it is idle.
    busy_watts
        Power of a unit in use when it is busy; by default, its power when idle.
    """

    name: Name
    units: PositiveInt
    memory_bytes: Positive
    weights_bytes: NonNegative
    kv_bytes_per_token: Positive
    passes: Given[PassPieces, PassPieces | Sequence[Mapping[str, float]]] = required()
    reserved_share: HalfOpenUnit = 0.0
    price_per_second: NonNegative = 0.0
    idle_watts: NonNegative = 0.0
    busy_watts: NonNegative | None = None

    def __post_init__(self) -> None:
        check(self)
        seconds = self.passes.at(1, 1, 0)
        if not 0.0 < seconds <= LONGEST_PASS:
            raise InvalidInput(
                f"passes: a pass of one token must take > 0 and <= {LONGEST_PASS:g} s, got"
                f" {seconds:g} s; are the values in milliseconds?"
            )
        if self.busy_watts is not None and self.busy_watts < self.idle_watts:
            raise InvalidInput(
                f"busy_watts: expected at least idle_watts = {self.idle_watts:g}, got"
                f" {self.busy_watts:g}"
            )

    @property
    def watts(self) -> tuple[float, float]:
        """Power of a unit when idle and when busy, in watts."""
        return self.idle_watts, self.idle_watts if self.busy_watts is None else self.busy_watts


@dataclass(frozen=True, kw_only=True, eq=False)
class Drafter(Checked):
    """A draft model, or draft heads, with pass times on the machines on which the drafter can run.
    Drafting times on devices belong to the classes of clients.

    Parameters
    ----------
    name
        Name of the drafter.
    kind
        Kind of drafter: "sequential" if each token requires a pass, "parallel" if one pass drafts
        all tokens.
    weights_bytes
        Size of the drafter's weights.
    kv_bytes_per_token
        Size of the drafter's KV cache per token.
    beside
        Duration of a pass on each verifier's units.
    server
        Duration of a pass on each draft pool's units.
    """

    name: Name
    kind: Literal["sequential", "parallel"] = "sequential"
    weights_bytes: NonNegative
    kv_bytes_per_token: NonNegative
    beside: Given[NamedPasses | None, NamedPasses | Mapping[str, Any] | None] = optional()
    server: Given[NamedPasses | None, NamedPasses | Mapping[str, Any] | None] = optional()

    @property
    def parallel(self) -> bool:
        """Whether one pass drafts all tokens."""
        return self.kind == "parallel"


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftPool:
    """Identical units that draft for many clients.

    Parameters
    ----------
    name
        Name of the pool.
    units
        Number of available units.
    memory_bytes
        Memory of each unit.
    round_trip_seconds
        Round-trip time between the pool and each verifier.
    price_per_second
        Price per second of each unit in use.
    busy_watts
        Power of each unit in use.
    """

    name: Name
    units: PositiveInt
    memory_bytes: Positive
    round_trip_seconds: Given[NamedTrips, NamedTrips | ByName] = required()
    price_per_second: NonNegative = 0.0
    busy_watts: NonNegative = 0.0

    def __post_init__(self) -> None:
        check(self)
        _check_trips(self.round_trip_seconds)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientClass:
    """A class of identical clients.

    Parameters
    ----------
    name
        Name of the class.
    clients
        Number of clients in the class, all of which decode simultaneously.
    context_tokens
        Typical number of cached tokens per client.
    max_context_tokens
        Number of cached tokens per client for which memory is reserved; by default
        `context_tokens`.
    weight
        Weight of the class's tokens in the objective.
    min_tokens_per_second
        Minimum rate of every client.
    acceptance
        Acceptance probabilities for each drafter: the probability that the token at each position
        is accepted, given that all its predecessors were accepted. An optional additional entry
        applies to the token after the draft.
    device_seconds_per_token
        Drafting time on the device with each drafter, per token, or per pass if the drafter is
        parallel.
    device_watts
        Power of the device while it drafts.
    round_trip_seconds
        Round-trip time between a client and each verifier.
    uplink_bits_per_second
        Uplink rate of each client; unlimited by default.
    """

    name: Name
    clients: PositiveInt
    context_tokens: NonNegativeInt
    max_context_tokens: NonNegativeInt | None = None
    weight: Positive = 1.0
    min_tokens_per_second: NonNegative = 0.0
    acceptance: Given[NamedRates, NamedRates | ByName] = required()
    device_seconds_per_token: Given[NamedSeconds | None, NamedSeconds | ByName | None] = optional()
    device_watts: NonNegative | None = None
    round_trip_seconds: Given[NamedTrips | None, NamedTrips | ByName | None] = optional()
    uplink_bits_per_second: Positive | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.max_context_tokens is not None and self.max_context_tokens < self.context_tokens:
            raise InvalidInput(
                f"max_context_tokens: expected at least context_tokens = {self.context_tokens}, got"
                f" {self.max_context_tokens}"
            )
        if self.round_trip_seconds is not None:
            _check_trips(self.round_trip_seconds)

    @property
    def max_context(self) -> int:
        """Number of cached tokens per client for which memory is reserved."""
        return self.context_tokens if self.max_context_tokens is None else self.max_context_tokens

    def accepted(self, drafter: str, draft_tokens: int) -> list[float]:
        """Return the acceptance rate at every draft position and for the token after the draft."""
        rates = np.atleast_1d(self.acceptance.values[drafter]).tolist()
        return [rates[min(k, len(rates) - 1)] for k in range(draft_tokens + 1)]


def _check_trips(trips: NamedTrips) -> None:
    for name, seconds in trips.values.items():
        if float(np.max(seconds)) > LONGEST_TRIP:
            raise InvalidInput(
                f"round_trip_seconds.{name}: expected at most {LONGEST_TRIP:g} s, got"
                f" {float(np.max(seconds)):g}; are the values in milliseconds?"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacementProblem(Problem):
    """Choose the units that serve all clients and the places where the clients' drafts are made.

    Parameters
    ----------
    verifiers
        Machines that verify.
    drafters
        Models that draft.
    classes
        Classes of clients.
    max_draft_tokens
        Maximum draft length.
    objective
        Objective. "goodput" is the weighted number of tokens per second, and "fair" is the weighted
        sum of the logarithms of the clients' rates. "capacity" is the share of every class's
        clients that can be served at their minimum rates. "cost" is the price of the used units,
        and "energy" is the power of the used units and the devices.
    draft_pools
        Machines that draft for many clients.
    bits_per_draft_token
        Number of bits per draft token on the uplink; the default suffices for a token's index.
    overlap
        Whether a device may draft ahead while the verifier works.

    Examples
    --------
    >>> from specopt import ClientClass, Drafter, PlacementProblem, Verifier, solve
    >>> passes = [
    ...     {
    ...         "overhead_seconds": 0.02,
    ...         "seconds_per_sequence": 1e-4,
    ...         "seconds_per_token": 5e-5,
    ...         "seconds_per_cached_token": 1e-8,
    ...     }
    ... ]
    >>> problem = PlacementProblem(
    ...     objective="goodput",
    ...     verifiers=[
    ...         Verifier(
    ...             name="gpu",
    ...             units=1,
    ...             memory_bytes=80e9,
    ...             weights_bytes=16e9,
    ...             kv_bytes_per_token=131072,
    ...             passes=passes,
    ...         )
    ...     ],
    ...     drafters=[Drafter(name="small", weights_bytes=1e9, kv_bytes_per_token=16384)],
    ...     classes=[
    ...         ClientClass(
    ...             name="chat",
    ...             clients=3,
    ...             context_tokens=1000,
    ...             acceptance={"small": 0.7},
    ...             device_seconds_per_token={"small": 0.01},
    ...             round_trip_seconds={"gpu": 0.05},
    ...         )
    ...     ],
    ...     max_draft_tokens=6,
    ... )
    >>> solve(problem, time_limit=10).status.value
    'optimal'
    """

    kind = "placement"
    plan_type = PlacementPlan
    sense: ClassVar[Sense] = "maximize"
    objective_label = "objective"

    verifiers: SomeObjects[Verifier] = required()
    drafters: Objects[Drafter] = required()
    classes: SomeObjects[ClientClass] = required()
    max_draft_tokens: Annotated[int, Meta(ge=1, le=1000)]
    objective: Objective
    draft_pools: Objects[DraftPool] = empty()
    bits_per_draft_token: NonNegative = 17.0
    overlap: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sense", self.sense_of(self.scale))
        object.__setattr__(self, "objective_label", LABELS[self.objective])
        if self.objective == "fair":
            object.__setattr__(self, "worth_label", "weighted geometric mean of the rates")
        names: dict[str, dict[str, None]] = {}
        for field in ("verifiers", "drafters", "draft_pools", "classes"):
            names[field] = {}
            for index, one in enumerate(getattr(self, field)):
                if one.name in names[field]:
                    raise InvalidInput(
                        f"{field}[{index}].name: expected a unique name, got {one.name!r} again"
                    )
                names[field][one.name] = None
        for field, own, of in (
            ("drafters", "beside", "verifiers"),
            ("drafters", "server", "draft_pools"),
            ("draft_pools", "round_trip_seconds", "verifiers"),
            ("classes", "round_trip_seconds", "verifiers"),
            ("classes", "acceptance", "drafters"),
            ("classes", "device_seconds_per_token", "drafters"),
        ):
            for index, one in enumerate(getattr(self, field)):
                known = getattr(one, own)
                for name in () if known is None else known.values:
                    if name not in names[of]:
                        some = ", ".join(names[of]) or "none"
                        raise InvalidInput(
                            f"{field}[{index}].{own}: expected names of {of} ({some}), got {name!r}"
                        )
        for index, one in enumerate(self.classes):
            for name, rates in one.acceptance.values.items():
                if rates.ndim and len(rates) not in (
                    self.max_draft_tokens,
                    self.max_draft_tokens + 1,
                ):
                    raise InvalidInput(
                        f"classes[{index}].acceptance.{name}: expected 1, max_draft_tokens ="
                        f" {self.max_draft_tokens} or {self.max_draft_tokens + 1} numbers, got"
                        f" {len(rates)}"
                    )
        self._check_objective()

    def _check_objective(self) -> None:
        minimum = [one.min_tokens_per_second > 0.0 for one in self.classes]
        priced = [one.price_per_second > 0.0 for one in self.verifiers]
        powered = [one.watts[1] > 0.0 for one in self.verifiers]
        measured = [
            one.device_watts is not None
            or one.device_seconds_per_token is None
            or not one.device_seconds_per_token.values
            for one in self.classes
        ]
        for objectives, field, known, expected in (
            ("capacity cost energy", "classes[{}].min_tokens_per_second", minimum, "> 0"),
            ("cost", "verifiers[{}].price_per_second", priced, "> 0"),
            ("energy", "verifiers[{}].busy_watts", powered, "> 0"),
            (
                "energy",
                "classes[{}].device_watts",
                measured,
                "a value for a class whose devices may draft",
            ),
        ):
            if self.objective in objectives.split() and not all(known):
                raise InvalidInput(
                    f"{field.format(known.index(False))}: expected {expected} when objective"
                    f" is {self.objective!r}"
                )

    # ------------------------------------------------------------------ objective

    @property
    def scale(self) -> tuple[float, ...]:
        """Two numbers: 1 if the objective is minimised, otherwise 0; and the sum of all clients'
        weights if the objective is "fair", otherwise 0.
        """
        weight = (
            math.fsum(one.weight * one.clients for one in self.classes)
            if self.objective == "fair"
            else 0.0
        )
        return (float(self.objective in ("cost", "energy")), weight)

    @classmethod
    def sense_of(cls, scale: Sequence[float] = ()) -> Sense:
        """Return whether the objective is minimised or maximised."""
        return "minimize" if scale and scale[0] else "maximize"

    @classmethod
    def worth(cls, value: float, scale: Sequence[float] = ()) -> float:
        """Return the weighted geometric mean of the rates if the objective is "fair", otherwise the
        objective itself.
        """
        return math.exp(min(700.0, value / scale[1])) if scale and scale[1] else value

    @classmethod
    def widened(cls, bound: float, scale: Sequence[float] = ()) -> float:
        """Return a bound that remains valid after rounding. If the objective is "fair", the
        relative margin applies to the geometric mean of the rates.
        """
        if scale and scale[1]:
            return bound + ROUNDING * (scale[1] + abs(bound))
        return super().widened(bound, scale)

    # ------------------------------------------------------------------ names

    @cached_property
    def verifier(self) -> dict[str, Verifier]:
        """Mapping from names to verifiers."""
        return {one.name: one for one in self.verifiers}

    @cached_property
    def drafter(self) -> dict[str, Drafter]:
        """Mapping from names to drafters."""
        return {one.name: one for one in self.drafters}

    @cached_property
    def pool(self) -> dict[str, DraftPool]:
        """Mapping from names to draft pools."""
        return {one.name: one for one in self.draft_pools}

    @cached_property
    def client_class(self) -> dict[str, ClientClass]:
        """Mapping from names to classes of clients."""
        return {one.name: one for one in self.classes}

    # ------------------------------------------------------------------ the judge

    def unit(self, plan: PlacementPlan, group: UnitGroup) -> Cycles:
        """Return the cycles of the clients on one of a group's units.

        Raises
        ------
        InvalidInput
            If the group refers to a name that does not exist.
        """
        verifier = self.verifier[group.verifier]
        beside = group.beside
        open_share = 1.0 - verifier.reserved_share

        def seconds(sequences: float, new: float, cached: float) -> float:
            total = verifier.passes.at(sequences, new, cached)
            if beside is not None:
                drafter = self.drafter[beside.drafter]
                k = beside.draft_tokens
                assert drafter.beside is not None, "the defects of the plan have been checked"
                passes = drafter.beside.values[verifier.name]
                if drafter.parallel:
                    total += passes.at(sequences, sequences * k, cached)
                else:
                    total += k * passes.at(sequences, sequences, cached)
            return total / open_share

        return cycles([self.entry(plan, group, one) for one in group.clients], seconds)

    def entry(self, plan: PlacementPlan, group: UnitGroup, one: Served) -> Entry:
        """Return the data that the judge needs about the clients of one class on a unit."""
        of = self.client_class[one.class_]
        drafter = self.drafter_of(plan, group, one)
        k = self.length_of(group, one)
        trips = np.zeros(1)
        sent = 0.0
        drafting = 0.0
        ahead = 0.0
        held = 0.0
        accepted = of.accepted(drafter.name, k) if drafter else []
        if one.place == "device":
            assert drafter is not None and of.round_trip_seconds is not None, (
                "the defects of the plan have been checked"
            )
            assert of.device_seconds_per_token is not None, "as above"
            each = of.device_seconds_per_token.values[drafter.name]
            trips = np.atleast_1d(of.round_trip_seconds.values[group.verifier])
            sent = k * self.bits_per_draft_token / (of.uplink_bits_per_second or math.inf)
            drafting = each if drafter.parallel else k * each
            if one.overlap:
                ahead = each if drafter.parallel else (k + 1) * each
                held = math.prod(accepted)
        elif one.place == "pool":
            assert drafter is not None and one.draft_group is not None, (
                "the defects of the plan have been checked"
            )
            served = plan.draft_groups[one.draft_group]
            trips = np.atleast_1d(self.pool[served.pool].round_trip_seconds.values[group.verifier])
            drafting = self.pool_seconds(plan, one.draft_group, k)
        yields = 1.0
        for position in range(k):
            yields += math.prod(accepted[: position + 1])
        return Entry(
            count=one.per_unit,
            new_tokens=k + 1,
            context_tokens=of.context_tokens,
            tokens=yields,
            trips=trips + sent,
            drafting_seconds=drafting,
            ahead_seconds=ahead,
            held=held,
        )

    def pool_seconds(self, plan: PlacementPlan, index: int, draft_tokens: int) -> float:
        """Return how long a draft group takes to draft K tokens, in seconds. All clients are
        assumed to draft simultaneously, after a pass that is already running.
        """
        served = plan.draft_groups[index]
        drafter = self.drafter[served.drafter]
        held = served.per_unit
        pooled = _pooled(plan, index)
        length = max(one.draft_tokens or 0 for one in pooled)
        context = max(self.client_class[one.class_].context_tokens for one in pooled)
        assert drafter.server is not None, "the defects of the plan have been checked"
        passes = drafter.server.values[served.pool]
        if drafter.parallel:
            return 2.0 * passes.at(held, held * length, held * context)
        return (draft_tokens + 1.0) * passes.at(held, held, held * context)

    def drafter_of(self, plan: PlacementPlan, group: UnitGroup, one: Served) -> Drafter | None:
        """Return the drafter for the clients of one class on a unit, or None if the clients are
        served without drafts.
        """
        if one.place == "beside" and group.beside is not None:
            return self.drafter.get(group.beside.drafter)
        if (
            one.place == "pool"
            and one.draft_group is not None
            and one.draft_group < len(plan.draft_groups)
        ):
            return self.drafter.get(plan.draft_groups[one.draft_group].drafter)
        return self.drafter.get(one.drafter or "") if one.place == "device" else None

    @staticmethod
    def length_of(group: UnitGroup, one: Served) -> int:
        """Return the draft length for the clients of one class on a unit, or 0 if the clients are
        served without drafts.
        """
        return group.beside.draft_tokens if group.beside is not None else one.draft_tokens or 0

    def evaluate(self, plan: PlacementPlan) -> Evaluation:
        """Return the objective of a plan, and details about how each class is served."""
        self.expect_fit(plan)
        return _evaluation(self, plan, [self.unit(plan, group) for group in plan.groups])

    def violations(self, plan: PlacementPlan) -> list[str]:
        """Return the violations of minimum rates, memory limits, and numbers of units and clients.
        If the plan does not match this problem, return only the reasons.
        """
        self.expect_plan(plan)
        return self._defects(plan) or [*self._slow(plan), *self._memory(plan), *self._counts(plan)]

    def serves(self, plan: PlacementPlan) -> bool:
        """Return whether all units of a plan satisfy the minimum rates and the memory limits, even
        if not all clients are served.
        """
        return not (self._defects(plan) or self._slow(plan) or self._memory(plan))

    def _defects(self, plan: PlacementPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem."""
        found = []
        for g, draft in enumerate(plan.draft_groups):
            where = f"draft_groups[{g}]"
            pool = self.pool.get(draft.pool)
            drafter = self.drafter.get(draft.drafter)
            if pool is None or drafter is None:
                field, name = ("pool", draft.pool) if pool is None else ("drafter", draft.drafter)
                found.append(f"{where}.{field}: unknown {field} {name!r}")
            elif drafter.server is None or draft.pool not in drafter.server.values:
                found.append(
                    f"{where}: drafter {draft.drafter!r} does not run on pool {draft.pool!r}"
                )
            if not _pooled(plan, g):
                found.append(f"{where}: no client uses this draft group")
        for g, group in enumerate(plan.groups):
            where = f"groups[{g}]"
            if group.verifier not in self.verifier:
                found.append(f"{where}.verifier: unknown verifier {group.verifier!r}")
                continue
            if group.beside is not None:
                drafter = self.drafter.get(group.beside.drafter)
                if (
                    drafter is None
                    or drafter.beside is None
                    or group.verifier not in drafter.beside.values
                ):
                    found.append(
                        f"{where}.beside: drafter {group.beside.drafter!r} does not run next to "
                        f"{group.verifier!r}"
                    )
                    continue
            for e, one in enumerate(group.clients):
                defect = self._defect_of(plan, group, one)
                if defect:
                    found.append(f"{where}.clients[{e}]{defect}")
        return found

    def _defect_of(self, plan: PlacementPlan, group: UnitGroup, one: Served) -> str | None:
        of = self.client_class.get(one.class_)
        if of is None:
            return f".class: unknown class {one.class_!r}"
        if one.place == "none":
            return None
        if one.place == "pool" and (one.draft_group or 0) >= len(plan.draft_groups):
            return f".draft_group: unknown draft group {one.draft_group}"
        if not 1 <= self.length_of(group, one) <= self.max_draft_tokens:
            return (
                f": expected a draft length from 1 to {self.max_draft_tokens}, got"
                f" {self.length_of(group, one)}"
            )
        drafter = self.drafter_of(plan, group, one)
        if drafter is None or drafter.name not in of.acceptance.values:
            return (
                f": class {of.name!r} has no acceptance rates for drafter"
                f" {drafter.name if drafter else one.drafter!r}"
            )
        if one.place == "device":
            if (
                of.device_seconds_per_token is None
                or drafter.name not in of.device_seconds_per_token.values
            ):
                return f": devices of class {of.name!r} do not run drafter {drafter.name!r}"
            if of.round_trip_seconds is None or group.verifier not in of.round_trip_seconds.values:
                return f": class {of.name!r} has no round trip to {group.verifier!r}"
            if one.overlap and not self.overlap:
                return ".overlap: the problem does not allow overlap"
        if one.place == "pool":
            pool = self.pool.get(plan.draft_groups[one.draft_group or 0].pool)
            if pool is not None and group.verifier not in pool.round_trip_seconds.values:
                return f": pool {pool.name!r} has no round trip to {group.verifier!r}"
        return None

    def _slow(self, plan: PlacementPlan) -> list[str]:
        found = []
        for g, group in enumerate(plan.groups):
            for e, (one, seconds) in enumerate(
                zip(group.clients, self.unit(plan, group).seconds, strict=True)
            ):
                rate = self.entry(plan, group, one).tokens / seconds
                least = self.client_class[one.class_]
                if exceeds(least.min_tokens_per_second, rate):
                    found.append(
                        f"groups[{g}].clients[{e}]: class {one.class_!r} gets {rate:.9g} tokens per"
                        f" second, but the minimum is {least.min_tokens_per_second:.9g}"
                    )
        return found

    def _memory(self, plan: PlacementPlan) -> list[str]:
        found = []
        for g, group in enumerate(plan.groups):
            verifier = self.verifier[group.verifier]
            weights = verifier.weights_bytes
            each = verifier.kv_bytes_per_token
            if group.beside is not None:
                drafter = self.drafter[group.beside.drafter]
                weights = weights + drafter.weights_bytes
                each = each + drafter.kv_bytes_per_token
            held = [
                one.per_unit
                * (self.client_class[one.class_].max_context + self.length_of(group, one) + 1)
                for one in group.clients
            ]
            needed = weights + each * math.fsum(held)
            if exceeds(needed, verifier.memory_bytes):
                found.append(
                    f"groups[{g}]: a unit needs {needed:.9g} bytes of memory, but has "
                    f"{verifier.memory_bytes:.9g}"
                )
        for g, draft in enumerate(plan.draft_groups):
            drafter = self.drafter[draft.drafter]
            most = max(
                self.client_class[one.class_].max_context + (one.draft_tokens or 0)
                for one in _pooled(plan, g)
            )
            needed = drafter.weights_bytes + drafter.kv_bytes_per_token * draft.per_unit * most
            if exceeds(needed, self.pool[draft.pool].memory_bytes):
                found.append(
                    f"draft_groups[{g}]: a unit needs {needed:.9g} bytes of memory, but has "
                    f"{self.pool[draft.pool].memory_bytes:.9g}"
                )
        return found

    def _counts(self, plan: PlacementPlan) -> list[str]:
        found: list[str] = []
        used: Counter[tuple[str, Any]] = Counter()
        for group in plan.groups:
            used["verifier", group.verifier] += group.units
            for one in group.clients:
                used["class", one.class_] += group.units * one.per_unit
                if one.place == "pool":
                    used["draft group", one.draft_group] += group.units * one.per_unit
        for draft in plan.draft_groups:
            used["pool", draft.pool] += draft.units
        for of in self.classes:
            placed = used["class", of.name]
            if self.objective != "capacity" and placed != of.clients:
                found.append(
                    f"class {of.name!r}: {placed} of {of.clients} clients are placed, but all must"
                    " be placed"
                )
        for name, units in (("verifier", self.verifiers), ("pool", self.draft_pools)):
            for each in units:
                if used[name, each.name] > each.units:
                    found.append(
                        f"{name} {each.name!r}: {used[name, each.name]} units are used, but only"
                        f" {each.units} exist"
                    )
        for g, draft in enumerate(plan.draft_groups):
            clients = used["draft group", g]
            share = -(-clients // draft.units)
            if draft.per_unit != share:
                found.append(
                    f"draft_groups[{g}].per_unit: expected {share} because {clients} clients share"
                    f" {draft.units} units, got {draft.per_unit}"
                )
        return found


def _pooled(plan: PlacementPlan, index: int) -> list[Served]:
    """Return the clients that use a draft group."""
    return [
        one
        for group in plan.groups
        for one in group.clients
        if one.place == "pool" and one.draft_group == index
    ]


def _evaluation(problem: PlacementProblem, plan: PlacementPlan, runs: list[Cycles]) -> Evaluation:
    """Evaluate a plan, given the cycles on its units."""
    served: dict[str, list[dict[str, Any]]] = {one.name: [] for one in problem.classes}
    busy: dict[str, list[tuple[int, Cycles]]] = {one.name: [] for one in problem.verifiers}
    goodput, fair, watts, tokens = [], [], [], []
    for group, run in zip(plan.groups, runs, strict=True):
        busy[group.verifier].append((group.units, run))
        for one, seconds, period in zip(group.clients, run.seconds, run.periods, strict=True):
            of = problem.client_class[one.class_]
            clients = group.units * one.per_unit
            entry = problem.entry(plan, group, one)
            drafter = problem.drafter_of(plan, group, one)
            rate = entry.tokens / seconds
            goodput.append(clients * of.weight * rate)
            fair.append(clients * of.weight * math.log(rate))
            tokens.append(clients * rate)
            if one.place == "device":
                watts.append(
                    clients * (of.device_watts or 0.0) * entry.device_seconds(period) / seconds
                )
            served[of.name].append(
                {
                    "place": one.place,
                    "verifier": group.verifier,
                    "drafter": None if drafter is None else drafter.name,
                    "draft_tokens": problem.length_of(group, one),
                    "overlap": one.overlap,
                    "clients": clients,
                    "tokens_per_second": rate,
                }
            )
    price = []
    for verifier in problem.verifiers:
        idle, full = verifier.watts
        for units, run in busy[verifier.name]:
            price.append(units * verifier.price_per_second)
            watts.append(units * (idle + (full - idle) * run.busy))
    for draft in plan.draft_groups:
        pool = problem.pool[draft.pool]
        price.append(draft.units * pool.price_per_second)
        watts.append(draft.units * pool.busy_watts)
    total, power = math.fsum(tokens), math.fsum(watts)
    terms = {
        "classes": served,
        "verifiers": {name: _used(units) for name, units in busy.items()},
        "tokens_per_second": total,
        "price_per_second": math.fsum(price),
        "watts": power,
        "joules_per_token": power / total if total else None,
    }
    shares = [
        sum(row["clients"] for row in rows) / problem.client_class[name].clients
        for name, rows in served.items()
    ]
    objective = {
        "goodput": math.fsum(goodput),
        "fair": math.fsum(fair),
        "capacity": min(shares),
        "cost": math.fsum(price),
        "energy": power,
    }[problem.objective]
    sizes = [sum(one.per_unit for one in group.clients) for group in plan.groups]
    return Evaluation(
        objective,
        terms,
        math.fsum(map(abs, fair)) if problem.objective == "fair" else 0.0,
        tie_break=(float(f"{power:.9g}"), max(sizes, default=0) - min(sizes, default=0)),
    )


def _used(units: list[tuple[int, Cycles]]) -> dict[str, Any]:
    """Return the number of used units, and the mean period, batch size and busy share over these
    units. The means are None if no unit is used.
    """
    count = sum(number for number, _ in units)

    def mean(figure: str) -> float | None:
        total: float = sum(number * getattr(run, figure) for number, run in units)
        return total / count if count else None

    return {
        "units": count,
        "period": mean("period"),
        "batch": mean("batch"),
        "busy_share": mean("busy"),
    }
