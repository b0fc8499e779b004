"""A server-side scheduler for the draft lengths of clients (paper 5, Algorithm 1).

>>> scheduler = GoodputScheduler(3, budget_tokens=9)
>>> scheduler.allocate()
array([3, 3, 3])
>>> scheduler.observe([3, 1, 0])  # drafts accepted before the first rejection
>>> scheduler.allocate()
array([5, 2, 2])
>>> scheduler.observe({0: 5, 1: 0})  # client 2 has not reported yet
>>> scheduler.observe({2: 1}, round=1)
>>> scheduler.leave(2)
>>> scheduler.join("new", initial_estimate=0.6)
>>> scheduler.clients
(0, 1, 'new')
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from specopt.models.acceptance import expected_tokens
from specopt.models.arguments import (
    LARGEST,
    Key,
    integer,
    key_of,
    number,
    one_of,
    positive,
    sequence,
)
from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput.problem import MAX_FAIRNESS, FairGoodputProblem
from specopt.models.fields import MAX_TOKENS, Count, Floats, Ints, Number, describe, parse
from specopt.online import base
from specopt.online.base import Fixed, Online, Saved, SavedTotals, Setting, locked
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.kernels import columns as col
from specopt.solvers.fair_goodput.policies import (
    Gradient,
    OnlinePolicy,
    Robust,
    discounts_of,
    first_counts,
    first_facts,
    options_of,
)
from specopt.solvers.fair_goodput.rounds import best_sum
from specopt.solvers.policy import as_policy

_Per = Literal["round", "second"]
Counts = Sequence[int] | Ints | Mapping[Key, int]
Ratios = Sequence[float] | Floats | Mapping[Key, float]

COLUMNS = {
    "weights": "weight",
    "max_draft_tokens": "max_draft_tokens",
    "initial_estimates": "initial_estimate",
    "min_goodput": "min_goodput",
    "draft_seconds_per_token": "draft_seconds_per_token",
    "network_seconds": "network_seconds",
}
"""Mapping from the constructor's per-client arguments to the names of these arguments in `join`."""

_OPEN_ROUNDS = 64
"""Number of recent rounds for which clients may still report."""


_PRESSURE_STEP, _MAX_PRESSURE = 0.5, 8.0
"""Maximum increase of the logarithm of a client's weight per round, and in total.

The maximum increase per round applies if the client receives none of its guaranteed goodput per
second.
"""

_LEFT = -3
"""Value that replaces the number of drafts of a client that has left."""


_KEPT = [col.GOODPUT, col.PROMISE, col.DRAFT_SECONDS, col.NETWORK_SECONDS, col.PRESSURE]
"""Columns of client data that all policies share, in addition to the weight and the estimate."""


class _Round(Saved):
    """The number of draft tokens for each client in one round.

    ABSENT marks the clients that did not take part in the round or have already reported.
    """

    number: Count
    clients: list[Key]
    drafts: list[Annotated[int, Meta(ge=_LEFT, le=MAX_TOKENS)]]
    reported: bool


class _State(SavedTotals):
    policy: dict[str, Any]
    fairness: float
    per: str
    verify_overhead_seconds: float
    verify_seconds_per_token: float
    round_seconds: Annotated[float, Meta(gt=0, le=1e200)]
    timed_rounds: Count
    budget_tokens: int
    clients: list[Key]
    facts: list[list[Number]]
    counts: list[list[Count]]
    rounds: list[_Round]
    last_round: Annotated[int, Meta(ge=-1, le=2**53)]


def _policy(name: str, value: Any) -> Any:
    """Return the policy specified by a name or by a policy object with options."""
    return as_policy(value, {"robust": Robust, "gradient": Gradient}, Robust, Gradient)


class GoodputScheduler(Online):
    """A scheduler that distributes a verifier's token budget fairly among its clients.

    The scheduler learns the acceptance rates of the clients.

    In each round, call `allocate`, let the clients draft and the server verify, and call `observe`
    with the numbers of accepted drafts. Time is measured only in rounds. Rounds may overlap:
    `allocate` can be called for the clients that are ready, and late clients report with the number
    of the round. A client that has not reported for some time receives only single drafts.

    Parameters
    ----------
    clients
        Names of the clients, or the number of clients.
    budget_tokens
        Number of draft tokens C per round. The budget, the policy and the weights may be changed at
        any time.
    policy
        Policy: "robust", "gradient", or an instance of one of these policies with options.
    fairness
        Exponent g of the utility: 1 for proportional fairness, 0 for the weighted sum of the rates.
    per
        Unit of the goodput and of the guaranteed rates, "round" or "second". For "second", a round
        lasts until the slowest client has drafted and sent its tokens and the verification has
        finished.
    verify_overhead_seconds
        Constant part of the verification time, in seconds.
    verify_seconds_per_token
        Verification time per token, in seconds.
    **columns
        Lists with one entry per client: weights (default 1), max_draft_tokens (default: no limit),
        initial_estimates (default: determined by the policy), min_goodput (default: no guaranteed
        rate), draft_seconds_per_token and network_seconds (default 0). If the budget is too small
        for all guaranteed rates, the scheduler meets the rates as far as possible.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    __slots__ = (
        "_clients",
        "_counts",
        "_discounts",
        "_facts",
        "_last_round",
        "_options",
        "_round_seconds",
        "_rounds",
        "_timed_rounds",
    )
    _KIND = "goodput"
    _METRICS: ClassVar = {
        "waiting": "Rounds with missing reports.",
        "clients": "Clients.",
        "rounds_total": "Rounds that were allocated.",
        "served_total": "Drafts that were accepted.",
        "tested_total": "Drafts that were tested.",
        "error_total": (
            "Absolute error of the accepted drafts that the estimates predicted, summed over"
            " reports."
        ),
        "late_total": "Reports after the allocation of a later round.",
        "evicted_total": "Rounds that were given up before all clients had reported.",
    }
    policy = Setting[Robust | Gradient](_policy)
    fairness = Fixed(partial(number, low=0.0, high=MAX_FAIRNESS))
    per = Fixed[_Per](partial(one_of, choices=get_args(_Per)))
    verify_overhead_seconds = Fixed(partial(number, low=0.0, high=LARGEST))
    verify_seconds_per_token = Fixed(partial(number, low=0.0, high=LARGEST))
    budget_tokens = Setting(partial(integer, low=0, high=MAX_TOKENS))

    def __init__(
        self,
        clients: int | Sequence[Key],
        budget_tokens: int,
        policy: OnlinePolicy | str = "robust",
        *,
        fairness: float = 1.0,
        per: _Per = "round",
        verify_overhead_seconds: float = 0.0,
        verify_seconds_per_token: float = 0.0,
        **columns: Sequence[float] | Floats | Ints | None,
    ) -> None:
        super().__init__(
            policy=policy,
            fairness=fairness,
            per=per,
            verify_overhead_seconds=verify_overhead_seconds,
            verify_seconds_per_token=verify_seconds_per_token,
            budget_tokens=budget_tokens,
        )
        self._options = options_of(self.policy, self.fairness)
        self._discounts = discounts_of(self.policy)
        self._clients: tuple[Key, ...] = ()
        self._facts: Floats = first_facts(self.policy, [], None)
        self._counts: Ints = first_counts([])
        self._timed_rounds = 0
        self._rounds: dict[int, _Round] = {}
        self._last_round = -1
        self._round_seconds = 1.0
        if isinstance(clients, (int, np.integer)):
            clients = range(integer("clients", clients, 0, MAX_TOKENS))
        names: list[Key] = sequence("clients", clients)
        if unknown := columns.keys() - COLUMNS.keys():
            raise TypeError(
                f"GoodputScheduler has no argument {min(unknown)!r}; the supported client"
                f" arguments are {', '.join(COLUMNS)}"
            )
        given = {
            COLUMNS[name]: sequence(name, column, len(names))
            for name, column in columns.items()
            if column is not None
        }
        for index, key in enumerate(names):
            self.join(key, **{field: column[index] for field, column in given.items()})

    # ------------------------------------------------------------------ clients

    @property
    def clients(self) -> tuple[Key, ...]:
        """Names of the clients, in the order of `allocate`."""
        return self._clients

    @property
    def weights(self) -> Floats:
        """Weights of the clients, in the order of `clients`."""
        return self._facts[:, col.WEIGHT].copy()

    @weights.setter
    @locked
    def weights(self, values: Sequence[float] | Floats) -> None:
        """Change the weights for subsequent rounds."""
        facts = self._facts.copy()
        given = sequence("weights", values, len(self._clients))
        facts[:, col.WEIGHT] = [
            positive(f"weights[{place}]", one) for place, one in enumerate(given)
        ]
        self._restart(facts, self._counts, self._clients)

    def _change(self, name: str, value: Any) -> None:
        facts, options, discounts = self._facts, self._options, self._discounts
        if name == "policy":
            facts = first_facts(value, facts[:, col.WEIGHT], facts[:, col.ESTIMATE])
            facts[:, _KEPT] = self._facts[:, _KEPT]  # all other facts are discarded
            options, discounts = options_of(value, self.fairness), discounts_of(value)
        self._restart(facts, self._counts, self._clients)
        self._options, self._discounts = options, discounts

    def _gauges(self) -> dict[str, float]:
        return {"waiting": len(self._rounds), "clients": len(self._clients)}

    @property
    def round_number(self) -> int:
        """Number of the last allocated round, counting from 0; -1 before the first round."""
        return self._last_round

    @property
    def estimates(self) -> Floats:
        """Estimated acceptance rate of each client."""
        return self._facts[:, col.ESTIMATE].copy()

    @property
    def goodput(self) -> Floats:
        """Smoothed goodput of each client, per round or per second (Eq. 4)."""
        return self._facts[:, col.GOODPUT] / self._round_seconds

    @locked
    def join(
        self,
        client: Key,
        *,
        weight: float = 1.0,
        max_draft_tokens: int | None = None,
        initial_estimate: float | None = None,
        min_goodput: float = 0.0,
        draft_seconds_per_token: float = 0.0,
        network_seconds: float = 0.0,
    ) -> None:
        """Add a client, which takes part from the next round on.

        The arguments have the same meaning as in the constructor.

        Raises
        ------
        InvalidInput
            If the name is in use, or a value is outside its domain.
        """
        client = key_of("client", client)
        if client in self._clients:
            raise InvalidInput(
                f"client: the client {describe(client)} already exists; choose another name"
            )
        weight = positive("weight", weight)
        cap, estimate = MAX_TOKENS, None
        if max_draft_tokens is not None:
            cap = integer("max_draft_tokens", max_draft_tokens, 0, MAX_TOKENS)
        if initial_estimate is not None:
            estimate = [number("initial_estimate", initial_estimate, 0.0, 1.0)]
        facts = first_facts(self.policy, [weight], estimate)
        for column, name, value in (
            (col.PROMISE, "min_goodput", min_goodput),
            (col.DRAFT_SECONDS, "draft_seconds_per_token", draft_seconds_per_token),
            (col.NETWORK_SECONDS, "network_seconds", network_seconds),
        ):
            facts[0, column] = number(name, value, 0.0, LARGEST)
        self._check_seconds(facts)
        self._restart(
            np.concatenate([self._facts, facts]),
            np.concatenate([self._counts, first_counts([cap])]),
            (*self._clients, client),
        )

    def _check_seconds(self, facts: Floats) -> None:
        """Reject clients for which the duration of a round could be zero.

        The goodput per second of these clients would be infinite.
        """
        if self.per == "second" and len(facts):
            quickest = self.verify_overhead_seconds + facts[:, col.NETWORK_SECONDS].min()
            if quickest < 1.0 / LARGEST:
                raise InvalidInput(
                    "network_seconds: expected more than 0 when verify_overhead_seconds is 0, got"
                    f" {quickest}"
                )

    @locked
    def leave(self, client: Key) -> None:
        """Remove a client. The client's drafts in open rounds are ignored from then on.

        Raises
        ------
        InvalidInput
            If the client does not exist.
        """
        client = key_of("client", client)
        if client not in self._clients:
            raise InvalidInput(f"client: expected one of the clients, got {describe(client)}")
        place = self._clients.index(client)
        rounds = {}
        for each, one in self._rounds.items():
            drafts = [
                _LEFT if key == client else count
                for key, count in zip(one.clients, one.drafts, strict=True)
            ]
            rounds[each] = _Round(each, one.clients, drafts, one.reported)
        self._restart(
            np.delete(self._facts, place, axis=0),
            np.delete(self._counts, place, axis=0),
            self._clients[:place] + self._clients[place + 1 :],
        )
        self._rounds = rounds

    def _restart(self, facts: Floats, counts: Ints, clients: tuple[Key, ...]) -> None:
        """Restart the average goodput, so that earlier allocations are not compensated for."""
        counts = counts.copy()
        counts[:, col.ROUNDS] = 0
        self._facts, self._counts, self._clients = facts, counts, clients
        self._timed_rounds = 0

    # ------------------------------------------------------------------ rounds

    def warm_up(self) -> None:
        """Load and compile the kernels, so that subsequent calls are fast."""
        twin = self.from_state(self.state())
        twin.observe([0] * len(twin.allocate()))

    @locked
    def allocate(self, clients: Iterable[Key] | None = None) -> Ints:
        """Start the next round, and return the number of draft tokens for each client (Eq. 5).

        Parameters
        ----------
        clients
            Clients that are ready. All other clients receive no drafts. None means all clients.

        Raises
        ------
        InvalidInput
            If a client does not exist.
        """
        drafts = np.zeros(len(self._clients), np.int64)
        if clients is not None:
            ready = {key_of("clients", key) for key in clients}
            for key in ready - set(self._clients):
                raise InvalidInput(
                    f"clients: expected one or more of the clients, got {describe(key)}"
                )
            drafts[[key not in ready for key in self._clients]] = col.ABSENT
        absent = drafts == col.ABSENT
        facts, seconds, timed = self._facts, self._round_seconds, self._timed_rounds
        if self.per == "second" and not absent.all():
            facts, drafts, seconds, timed = self._best_per_second(drafts)
        else:
            _kernels().allocate(
                self.policy.code, self._options, facts, self._counts, self.budget_tokens, drafts
            )
        number = self._last_round + 1
        opened = _Round(
            number, list(self._clients), np.where(absent, col.ABSENT, drafts).tolist(), False
        )
        rounds = self._rounds | {number: opened}
        given_up = rounds.pop(number - _OPEN_ROUNDS, None)
        totals = self._counted(rounds=1, evicted=given_up is not None)
        self._facts, self._round_seconds, self._timed_rounds = facts, seconds, timed
        self._rounds, self._last_round, self._totals = rounds, number, totals
        return drafts

    def _best_per_second(self, drafts: Ints) -> tuple[Floats, Ints, float, int]:
        """Plan the round with the largest weighted sum of rates per second.

        Return the client data after the round, the drafts of the round, the mean duration of a
        round in seconds, and the number of timed rounds. Clients that must be tested receive a
        draft first. The weight of a client rises while its rate is below the guaranteed rate.
        Because drafts delay the round, more drafts may lower the rate of a client.
        """
        ready = np.flatnonzero(drafts != col.ABSENT)
        learned = self._facts.copy()
        learned[:, [col.WEIGHT, col.PROMISE]] = 0.0
        _kernels().allocate(
            self.policy.code, self._options, learned, self._counts, self.budget_tokens, drafts
        )
        learned[:] = self._facts
        facts, due = self._facts[ready], drafts[ready]
        overhead, per_token = base.normal(
            np.array([self.verify_overhead_seconds, self.verify_seconds_per_token])
        ).tolist()
        one = FairGoodputProblem(
            acceptance_rates=base.normal(np.minimum(facts[:, col.ESTIMATE], col.MOST)),
            budget_tokens=self.budget_tokens,
            max_draft_tokens=np.where(
                self._counts[ready, col.SILENT] < col.PATIENCE, self._counts[ready, col.CAP], due
            ),
            per="second",
            draft_seconds_per_token=base.normal(facts[:, col.DRAFT_SECONDS]),
            network_seconds=base.normal(facts[:, col.NETWORK_SECONDS]),
            verify_overhead_seconds=overhead,
            verify_seconds_per_token=per_token,
        )
        logs = (
            np.log(facts[:, col.WEIGHT])
            - self.fairness * np.log(facts[:, col.GOODPUT])
            + facts[:, col.PRESSURE]
        )
        prices = np.exp(logs - logs.max())
        best = np.maximum(best_sum(one, prices, Budget(one))[1], due)
        while best.sum() > self.budget_tokens:  # required drafts replace the least valuable drafts
            last = np.where(best > due, prices * facts[:, col.ESTIMATE] ** best, math.inf)
            best[last.argmin()] -= 1
        timed = self._timed_rounds + 1
        share = max(self._options[col.SMOOTHING], 1.0 / timed)
        seconds = (1.0 - share) * self._round_seconds + share * one.round_seconds(best)
        promised = facts[:, col.PROMISE] > 0.0
        kept = expected_tokens(facts[promised, col.ESTIMATE], best[promised])
        with np.errstate(over="ignore"):  # the ratio may be infinite for tiny guarantees
            kept = kept / (facts[promised, col.PROMISE] * seconds)
        learned[ready[promised], col.PRESSURE] = np.clip(
            facts[promised, col.PRESSURE] + _PRESSURE_STEP * (1.0 - kept), 0.0, _MAX_PRESSURE
        )
        drafts[ready] = best
        return learned, drafts, float(seconds), timed

    @locked
    def observe(
        self,
        accepted: Counts,
        tested: Counts | None = None,
        *,
        acceptance_ratios: Ratios | None = None,
        round: int | None = None,
    ) -> None:
        """Learn from a round (Eq. 3-4).

        Parameters
        ----------
        accepted
            Number of drafts of each client that were accepted before the first rejection, in the
            order of the allocation or by client. Omitted clients may report later. Nothing is
            learned from a round for which no client reports.
        tested
            Number of tested drafts of each client, that is, the accepted drafts and the first
            rejected draft. The numbers are needed only if clients drafted fewer tokens than
            allocated; otherwise, they follow from `accepted`.
        acceptance_ratios
            Mean of min(1, p/q) over all drafted tokens of each client (Eq. 3), which is more
            informative than the numbers of drafts. Values for clients without drafts are ignored,
            even NaN.
        round
            Number of the round, which must be one of the last 64 rounds; None for the last round.

        Raises
        ------
        InvalidInput
            If the round does not exist, if a client did not take part in the round or has already
            reported, or if a value is impossible.
        """
        number = self._last_round if round is None else integer("round", round, 0)
        if number not in self._rounds:
            if round is None:
                raise InvalidInput("observe: no round is open; call `allocate()` first")
            raise InvalidInput(
                f"round: expected a round with missing reports, got {describe(round)}"
            )
        current = self._rounds[number]
        roster, drafts = tuple(current.clients), np.array(current.drafts, np.int64)
        known = drafts.copy()
        if isinstance(accepted, Mapping):
            known[drafts >= 0] = col.ABSENT if current.reported else col.UNHEARD
            for key in (key_of("accepted", key) for key in accepted):
                place = roster.index(key) if key in roster else -1
                if place < 0 or drafts[place] == col.ABSENT:
                    raise InvalidInput(
                        "accepted: expected clients in the round that have not reported yet, got"
                        f" {describe(key)}"
                    )
                known[place] = drafts[place]
        taken = _column("accepted", accepted, accepted, roster, "iu")
        most = np.minimum(taken + 1, drafts)
        counted = most if tested is None else _column("tested", tested, accepted, roster, "iu")
        heard = known >= 0
        wrong = np.flatnonzero(heard & ((taken < 0) | (taken > counted) | (counted > most)))
        if len(wrong):
            place = int(wrong[0])
            raise _defect(roster[place], drafts[place], taken[place], counted[place])
        hits, evidence = taken.astype(np.float64), counted.astype(np.float64)
        if acceptance_ratios is not None:
            ratios = _column("acceptance_ratios", acceptance_ratios, accepted, roster, "iuf")
            ratios = np.where(drafts > 0, ratios, 0.0)
            outside = heard & ~((ratios >= 0.0) & (ratios <= 1.0))
            if outside.any():
                place = int(outside.argmax())
                raise InvalidInput(
                    f"acceptance_ratios[{describe(roster[place])}]: expected a ratio from 0 to 1,"
                    f" got {ratios[place]}"
                )
            evidence = np.maximum(drafts, 0).astype(np.float64)
            hits = ratios * evidence
        left = np.where(heard, col.ABSENT, drafts).tolist()
        rounds = self._rounds.copy()
        del rounds[number]
        if max(left, default=-1) >= 0:
            rounds[number] = _Round(number, current.clients, left, True)
        if roster != self._clients:
            rows = [roster.index(key) if key in roster else -1 for key in self._clients]
            # Clients that were not in the round use the appended last entry.
            known = np.append(known, col.ABSENT)[rows]
            taken, hits, evidence = (
                np.append(values, 0)[rows] for values in (taken, hits, evidence)
            )
        facts, counts = self._facts.copy(), self._counts.copy()
        there = known >= 0
        right, tried = hits[there], evidence[there]
        totals = self._counted(
            served=float(right.sum()),
            tested=float(tried.sum()),
            error=float(np.abs(right - facts[there, col.ESTIMATE] * tried).sum()),
            late=number < self._last_round and bool(there.any()),
        )
        _kernels().observe(
            self.policy.code,
            self._options,
            self._discounts,
            facts,
            counts,
            known,
            taken,
            hits,
            evidence,
        )
        self._facts, self._counts, self._rounds, self._totals = facts, counts, rounds, totals

    # ------------------------------------------------------------------ state

    def _saved(self) -> _State:
        return _State(
            **self._settings
            | {"policy": {"name": self.policy.name, **dataclasses.asdict(self.policy)}},
            round_seconds=self._round_seconds,
            timed_rounds=self._timed_rounds,
            clients=[*self._clients],
            facts=self._facts.tolist(),
            counts=self._counts.tolist(),
            rounds=list(self._rounds.values()),
            last_round=self._last_round,
        )

    @classmethod
    @base.restoring()
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a scheduler from a state.

        Raises
        ------
        InvalidInput
            If the data is not a valid state of a scheduler.
        """
        found = _State.read(state)
        options = dict(found.policy)
        policy: Any = parse(type(_policy("policy", options.pop("name", None))), options, "policy")
        scheduler = cls(0, **cls._settings_in(found) | {"policy": policy})
        clients = tuple(base.distinct("clients", found.clients))
        width = scheduler._facts.shape[1]
        for name, rows, size in (
            ("facts", found.facts, width),
            ("counts", found.counts, col.COUNTS),
        ):
            if [len(row) for row in rows] != [size] * len(clients):
                raise InvalidInput(
                    f"{name}: expected one row of {size} numbers per client, got {describe(rows)}"
                )
        facts = np.array(found.facts, np.float64).reshape(-1, width)
        counts = np.array(found.counts, np.int64).reshape(-1, col.COUNTS)
        low, high = np.zeros(width), np.full(width, math.inf)
        low[[col.WEIGHT, col.GOODPUT]] = 5e-324
        high[[col.ESTIMATE, col.PRIOR]], high[col.PRESSURE] = 1.0, _MAX_PRESSURE
        if isinstance(policy, Robust):
            beliefs = range(col.MEMORIES + 2 * len(scheduler._discounts), width)
            # Sums of probabilities have rounding errors.
            high[[col.BY_PLACE, *range(col.RATES, col.MEMORIES), *beliefs]] = 1.0 + 1e-9
        wrong = np.argwhere(~((low <= facts) & (facts <= high)))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise InvalidInput(
                f"facts[{row}][{column}]: expected a number from {low[column]} to {high[column]},"
                f" got {describe(found.facts[row][column])}"
            )
        if counts[:, col.CAP].max(initial=0) > MAX_TOKENS:
            raise InvalidInput(
                f"counts: expected caps of at most {MAX_TOKENS}, got {describe(found.counts)}"
            )
        scheduler._check_seconds(facts)
        for index, one in enumerate(found.rounds):
            where = f"rounds[{index}]"
            if len(one.drafts) != len(one.clients):
                raise InvalidInput(
                    f"{where}.drafts: expected one entry per client, got {describe(one.drafts)}"
                )
            late = found.last_round - _OPEN_ROUNDS < one.number <= found.last_round
            if not late or one.number in scheduler._rounds:
                raise InvalidInput(
                    f"{where}.number: expected a recent round that occurs once, got"
                    f" {describe(one.number)}"
                )
            base.distinct(f"{where}.clients", one.clients)
            scheduler._rounds[one.number] = one
        scheduler._clients, scheduler._facts, scheduler._counts = clients, facts, counts
        scheduler._round_seconds, scheduler._timed_rounds = found.round_seconds, found.timed_rounds
        scheduler._last_round = found.last_round
        scheduler._restore_totals(found.totals)
        return scheduler


@cache
def _kernels() -> ModuleType:
    import specopt.solvers.fair_goodput.kernels.simulation as kernels

    return kernels


def _column(
    name: str, values: Any, accepted: Any, roster: tuple[Key, ...], kinds: str
) -> NDArray[Any]:
    """Convert values to an array in the client order of the round.

    Omitted clients have the value 0.
    """
    if isinstance(values, Mapping) != isinstance(accepted, Mapping) or (
        isinstance(values, Mapping) and values.keys() != accepted.keys()
    ):
        raise InvalidInput(f"{name}: expected the same clients as in `accepted`, in the same form")
    if isinstance(values, Mapping):
        values = [values.get(key, 0) for key in roster]
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.shape != (len(roster),):
        raise InvalidInput(
            f"{name}: expected {len(roster)} entries, one per client of the round, got"
            f" {describe(values)}"
        )
    if len(array) and array.dtype.kind not in kinds:
        word = "integers" if kinds == "iu" else "numbers"
        raise InvalidInput(f"{name}: expected {word}, got {describe(values)}")
    return np.ascontiguousarray(array, np.int64 if kinds == "iu" else np.float64)


def _defect(client: Key, drafts: int, accepted: int, tested: int) -> InvalidInput:
    """Return an exception that describes a client's inconsistent numbers of drafts."""
    if not 0 <= accepted <= drafts:
        return InvalidInput(
            f"accepted[{describe(client)}]: expected 0 to {drafts}, the number of draft tokens, got"
            f" {accepted}"
        )
    most = min(accepted + 1, drafts)
    return InvalidInput(
        f"tested[{describe(client)}]: expected {accepted} to {most}, the accepted drafts and at"
        f" most one rejected draft, got {tested}"
    )
