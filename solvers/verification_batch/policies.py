"""Policies of a verifier in the long run, which choose a batch at every epoch.

====================  ==========================================================================
``fcfs``              all that is pending, in order of arrival, as far as memory goes (SLED, without
                      cache)
``edf``               earliest deadline of the iteration (Eq. 12) first, batches capped
``algorithm-1``       as printed: it stops for ever once the most urgent critical request is late
``algorithm-1-drop``  Algorithm 1 without the requests that cannot meet their deadline any more
``per-epoch``         most expected tokens of this epoch: best over all tightest deadlines of the
                      density greedy, optimal where all values are equal and memory is slack, else
                      at least half when it is slack
``slack``             least slack of the *response* first, start + (done + E[tokens]) / tau - now;
                      those far behind come last, and requests far ahead fill what capacity is to
                      spare: batches that are short beside the time of the tightest requests; where
                      the cache of prefixes cannot hold all, slow responses run ahead while theirs
                      is cached, then wait without
====================  ==========================================================================

The paper does not decide on late requests. Under ``algorithm-1-drop`` and ``per-epoch``
they fill the room that a batch leaves before its tightest deadline (with `fill_with_late`). They
are served in order of arrival when nothing else is pending: the batch is never empty while anything
waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from specopt.models.arguments import boolean, number, one_of
from specopt.models.pass_time import COEFFICIENTS, VerificationTime
from specopt.solvers.room import whole_room

PolicyName = Literal["fcfs", "edf", "algorithm-1", "algorithm-1-drop", "per-epoch", "slack"]
Eviction = Literal["due-last", "least-recently-used"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)  # in the order of the kernel's codes


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How the verifier chooses. ``slack`` has nothing to set: values of None follow from
    the requests.

    Parameters
    ----------
    name
        One of `POLICIES`.
    cap_seconds
        Longest batch with more than one request, unless the deadlines of an epoch choose it;
        None: none for ``fcfs`` and ``slack``, 0.15 s for the others.
    defer_seconds
        ``slack``: a request can wait while its response is further ahead than this; None: than a
        window and what bad luck may cost it.
    give_up_seconds
        ``slack``: requests later than this come last, so that under overload some responses wait
        instead of all being late; infinity: never.
    eviction
        What a full cache of prefixes drops: the one whose next verification is due last, or the
        least recently used; None: the former for ``slack``, the latter for the others.
    fill_with_late
        ``algorithm-1-drop``, ``per-epoch``: whether late requests fill what room a batch leaves.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    name: PolicyName = "slack"
    cap_seconds: float | None = None
    defer_seconds: float | None = None
    give_up_seconds: float = 1.0
    eviction: Eviction | None = None
    fill_with_late: bool = True

    def __post_init__(self) -> None:
        one_of("policy", self.name, POLICIES)
        if self.eviction is not None:
            one_of("eviction", self.eviction, get_args(Eviction))
        for name in ("cap_seconds", "defer_seconds", "give_up_seconds"):
            value = getattr(self, name)
            if value is None and name != "give_up_seconds":
                continue
            if value != math.inf:  # never
                number(name, value, 0)
        boolean("fill_with_late", self.fill_with_late)

    def rule(
        self,
        estimator: VerificationTime,
        guard_seconds: float,
        memory_bytes: float | None,
        kv_bytes_per_token: float,
    ) -> Any:
        """Return the rule by which the kernel decides."""
        from specopt.solvers.verification_batch.kernels.simulation import Rule

        cap = self.cap_seconds
        if cap is None:
            cap = math.inf if self.name in ("fcfs", "slack") else 0.15
        return Rule(
            policy=POLICIES.index(self.name),
            costs=np.array([getattr(estimator, name) for name in COEFFICIENTS], np.float64),
            bytes_per_token=kv_bytes_per_token,
            guard=guard_seconds,
            memory=math.inf if memory_bytes is None else whole_room(memory_bytes),
            cap=float(cap),
            defer=-1.0 if self.defer_seconds is None else float(self.defer_seconds),
            give_up=float(self.give_up_seconds),
            fill=self.fill_with_late,
            tight=np.zeros(1),
            due_last=(
                self.eviction or ("due-last" if self.name == "slack" else "least-recently-used")
            )
            == "due-last",
        )


NAMED: dict[str, partial[Policy]] = {name: partial(Policy, name=name) for name in POLICIES}
"""The policies with their default options, by name."""
