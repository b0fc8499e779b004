"""Policies for the long-run simulation of a verifier, which choose a batch at every epoch.

====================  ==========================================================================
``fcfs``              all pending requests in order of arrival, as far as memory allows (SLED,
                      without cache)
``edf``               earliest deadline of the iteration (Eq. 12) first, with a cap on batch time
``algorithm-1``       Algorithm 1 as printed: it stops forever once the most urgent critical
                      request is late
``algorithm-1-drop``  Algorithm 1 without the requests that can no longer meet their deadline
``per-epoch``         most expected tokens in this epoch: the best greedy batch by value per second
                      over all tightest deadlines. If memory does not bind, the batch is optimal for
                      equal values, and otherwise reaches at least half of the optimum.
``slack``             least slack of the *response* first: start + (done + E[tokens]) / tau - now.
                      Requests that are far behind come last. Requests that are far ahead fill
                      spare capacity, as long as batches stay short compared with the time allowed
                      to the tightest requests. If the prefix cache cannot hold all prefixes, slow
                      responses run ahead while their prefix is cached, then wait without a prefix.
====================  ==========================================================================

The paper does not specify how to treat late requests. Under ``algorithm-1-drop`` and ``per-epoch``,
late requests are added to a batch if `fill_with_late` is true and the batch still meets its
tightest deadline. Late requests are served in order of arrival when nothing else is pending, so the
batch is never empty while a request is waiting.
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
    """The rule by which the verifier chooses batches.

    The policy ``slack`` needs no settings, because options that are None are derived from the
    requests.

    Parameters
    ----------
    name
        Name of the policy, one of `POLICIES`.
    cap_seconds
        Maximum duration, in seconds, of a batch with more than one request, unless the deadlines of
        an epoch limit the batch. None means no cap for ``fcfs`` and ``slack``, and 0.15 s for the
        other policies.
    defer_seconds
        Lead of a response, in seconds, beyond which its request can wait under ``slack``. None
        means one window plus a safety margin.
    give_up_seconds
        Lateness, in seconds, beyond which requests come last under ``slack``. Under overload, some
        responses then wait, so that the others are not late. Infinity means never.
    eviction
        Which prefix a full cache drops: the prefix whose next verification is due last, or the
        least recently used prefix. None selects the former for ``slack`` and the latter for the
        other policies.
    fill_with_late
        Whether late requests are added to batches that have spare time and memory, under
        ``algorithm-1-drop`` and ``per-epoch``.

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
        """Return the kernel record of the rule by which batches are chosen."""
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
