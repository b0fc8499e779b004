"""Fair goodput: the long-run token rates of clients that share one verifier.

The model is problem (1) over region (2) of paper 5. N clients draft for one verifier. In a round
with allocation S, client i drafts S_i tokens and gains mu_i(S_i) = (1 - a_i^(S_i+1)) / (1 - a_i)
tokens in expectation, including the token that the server adds. All clients together draft at most
C tokens per round. A plan mixes rounds with several allocations. The objective is an alpha-fair
utility of the long-run goodput, per round or per second. If goodput is per second, the duration of
a round is the time of its slowest client plus the time to verify all drafts.

The judge processes the entries of a schedule in order and updates only the clients that change.
Schedules for a million clients with few changes per entry are therefore judged in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from specopt.models.acceptance import expected_tokens
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    MAX_BUDGET,
    Column,
    Custom,
    Floats,
    FloatsLike,
    Given,
    HalfOpenUnits,
    Ints,
    NonNegative,
    NonNegatives,
    OptionalNonNegatives,
    OptionalTokenBudgets,
    Positive,
    TokenBudget,
    Truths,
    frozen,
    optional,
    read,
    required,
)
from specopt.models.problem import ROUNDING, Evaluation, Plan, Problem
from specopt.models.schema import described

MAX_FAIRNESS = 100.0
"""Maximum fairness exponent. With a larger exponent, the utility would overflow."""

LARGEST = 1e250
"""Upper bound on the total weight, the utility, the slope of the utility, and the duration of a
round. Sums and small multiples of these values are then finite.
"""

LARGEST_EXPONENT = 700.0

MIN_ULPS = 3
"""Minimum number of units in the last place by which an upper bound on the utility is increased, to
allow for rounding errors in sums and powers.
"""

Fairness = Annotated[float, Meta(ge=0, le=MAX_FAIRNESS)]
SCHEDULE_TOLERANCE = 1e-9
"""Relative tolerance with which a schedule must attain the plan's declared rates and the minimum
rates. It is also the absolute tolerance with which the schedule's shares must sum to 1.
"""


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    share: NonNegative
    draft_tokens: list[TokenBudget] | msgspec.UnsetType = msgspec.UNSET
    changes: list[tuple[TokenBudget, TokenBudget]] | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule(Custom):
    """A list of integer allocations, each with the share of rounds or time in which it is used.

    The first entry specifies a full allocation. Every other entry specifies either a full
    allocation or the changes from the previous allocation. The entries are stored in concatenated
    arrays: entry e sets ``tokens[k]`` for client ``clients[k]``, for k from ``starts[e]`` to
    ``starts[e + 1] - 1``. The JSON form is a list of ``{"share", "draft_tokens": [...]}`` and
    ``{"share", "changes": [[client, tokens], ...]}``.

    Parameters
    ----------
    share
        Share of the rounds or of the time in which each allocation is used. The problem's field
        `per` determines which of the two is meant.
    starts
        Index in `clients` and `tokens` at which each entry starts, followed by the length of these
        arrays.
    clients
        Indices of the clients whose number of draft tokens each entry sets, for all entries in
        order.
    tokens
        New number of draft tokens for each item of `clients`.
    full
        Whether each entry specifies a full allocation. Such an entry sets every client, in order.
        The first entry is always a full allocation.
    """

    share: Floats
    starts: Ints
    clients: Ints
    tokens: Ints
    full: Truths

    def __post_init__(self) -> None:
        for name, dtype in (
            ("share", np.float64),
            ("starts", np.int64),
            ("clients", np.int64),
            ("tokens", np.int64),
            ("full", np.bool_),
        ):
            # always a copy, because the caller may change the array
            array = np.array(getattr(self, name), dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if not len(self.share):
            raise InvalidInput("schedule: expected at least one entry, got none")
        lengths = self.starts[1:] - self.starts[:-1]
        if (
            len(self.starts) != len(self.share) + 1
            or len(self.full) != len(self.share)
            or len(self.clients) != len(self.tokens)
            or self.starts[0] != 0
            or self.starts[-1] != len(self.clients)
            or np.count_nonzero(lengths < 0)
        ):
            raise InvalidInput("schedule: the arrays of a schedule must have consistent lengths")
        if not self.full[0]:
            raise InvalidInput(
                "schedule[0].draft_tokens: missing; required because the first entry has no"
                " previous entry to change"
            )
        size = self.size
        if not size:
            raise InvalidInput("schedule[0].draft_tokens: expected at least 1 entry, got 0")
        for entry in np.flatnonzero(self.full):
            start = self.starts[entry]
            stop = self.starts[entry + 1]
            if stop - start != size:
                raise InvalidInput(
                    f"schedule[{entry}].draft_tokens: expected {size} entries, as in schedule[0],"
                    f" got {stop - start}"
                )
            if np.count_nonzero(self.clients[start:stop] != np.arange(size)):
                raise InvalidInput(
                    f"schedule[{entry}]: an entry with draft_tokens must list every client, in"
                    " order"
                )
        self._refuse(
            ~np.isfinite(self.share) | (self.share < 0), "share", "a share >= 0", self.share
        )
        outside = (self.clients < 0) | (self.clients >= size)
        self._refuse(outside, "changes", f"clients 0 to {size - 1}", self.clients, self.entries)
        outside = (self.tokens < 0) | (self.tokens > MAX_BUDGET)
        self._refuse(
            outside, "changes", f"tokens from 0 to {MAX_BUDGET}", self.tokens, self.entries
        )
        keys = self.entries * size + self.clients
        if not np.count_nonzero(keys[1:] <= keys[:-1]):
            return
        order = np.argsort(keys, kind="stable")
        twice = np.zeros(len(order), np.bool_)
        twice[order[1:]] = keys[order[1:]] == keys[order[:-1]]
        self._refuse(twice, "changes", "each client at most once", self.clients, self.entries)

    def _refuse(
        self,
        wrong: Truths,
        field: str,
        expected: str,
        values: NDArray[Any],
        entries: Ints | None = None,
    ) -> None:
        if np.count_nonzero(wrong):
            index = int(np.argmax(wrong))
            entry = index if entries is None else int(entries[index])
            raise InvalidInput(
                f"schedule[{entry}].{field}: expected {expected}, got {values[index]}"
            )

    def __len__(self) -> int:
        return len(self.share)

    @property
    def size(self) -> int:
        """Number of clients."""
        return int(self.starts[1])

    @property
    def changes(self) -> int:
        """Total number of changes to individual clients after the first entry. In a full
        allocation, only the clients whose number of draft tokens changes are counted.
        """
        return int(np.count_nonzero(self.steps[self.starts[1] :]))

    @cached_property
    def entries(self) -> Ints:
        """Index of the entry that contains each item of `clients` and `tokens`."""
        return frozen(np.repeat(np.arange(len(self.share)), self.starts[1:] - self.starts[:-1]))

    @cached_property
    def before(self) -> Ints:
        """For each item of `clients`, the client's number of draft tokens before the entry that
        contains the item. The number is 0 for items in the first entry.
        """
        order = np.argsort(self.clients, kind="stable")
        earlier = np.zeros(len(order), np.int64)
        same = self.clients[order[1:]] == self.clients[order[:-1]]
        earlier[order[1:]] = np.where(same, self.tokens[order[:-1]], 0)
        return frozen(earlier)

    @cached_property
    def steps(self) -> Ints:
        """For each item of `clients`, the change in the client's number of draft tokens."""
        return frozen(self.tokens - self.before)

    def allocations(self) -> Iterator[tuple[float, Ints]]:
        """Yield the share and the allocation of every entry. Each allocation is a new array."""
        current = np.zeros(self.size, np.int64)
        for entry, share in enumerate(self.share.tolist()):
            part = slice(self.starts[entry], self.starts[entry + 1])
            current[self.clients[part]] = self.tokens[part]
            yield share, current.copy()

    @classmethod
    def of(cls, shares: Sequence[float] | Floats, allocations: Sequence[Any] | Ints) -> Self:
        """Build a schedule from the shares and full allocations of its entries. `allocations` has
        one row per entry and one column per client.
        """
        table = np.asarray(allocations, np.int64)
        count, size = table.shape
        return cls(
            share=np.asarray(shares, np.float64),
            starts=np.arange(count + 1) * size,
            clients=np.arange(count * size) % size,
            tokens=table.ravel(),
            full=np.ones(count, np.bool_),
        )

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build a schedule from its JSON form, a list of entries. Error messages begin with
        `where`.
        """
        entries: list[_Entry] = read(list[_Entry], data, where)
        clients: list[Sequence[int]] = []
        tokens: list[Sequence[int]] = []
        for index, entry in enumerate(entries):
            in_full = entry.draft_tokens
            changed = entry.changes
            if isinstance(in_full, list) == isinstance(changed, list):
                came = "both" if isinstance(in_full, list) else "neither"
                raise InvalidInput(
                    f"{where}[{index}]: expected either draft_tokens or changes, got {came}"
                )
            if isinstance(in_full, list):
                clients.append(range(len(in_full)))
                tokens.append(in_full)
            elif isinstance(changed, list):
                clients.append([client for client, _ in changed])
                tokens.append([count for _, count in changed])
        try:
            return cls(
                share=np.array([entry.share for entry in entries], np.float64),
                starts=np.cumsum([0, *map(len, clients)]),
                clients=np.fromiter(chain.from_iterable(clients), np.int64),
                tokens=np.fromiter(chain.from_iterable(tokens), np.int64),
                full=np.array(
                    [isinstance(entry.draft_tokens, list) for entry in entries], np.bool_
                ),
            )
        except InvalidInput as error:
            raise InvalidInput(where + str(error).removeprefix("schedule")) from None

    def dump(self) -> list[dict[str, Any]]:
        """Return the schedule in its JSON form, a list of entries."""
        pairs = np.column_stack((self.clients, self.tokens)).tolist()
        starts = self.starts.tolist()
        return [
            (
                {"share": share, "draft_tokens": self.tokens[start:stop].tolist()}
                if full
                else {"share": share, "changes": pairs[start:stop]}
            )
            for share, start, stop, full in zip(
                self.share.tolist(), starts[:-1], starts[1:], self.full.tolist(), strict=True
            )
        ]

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the list of entries."""
        share = {"type": "number", "minimum": 0}
        count = {"type": "integer", "minimum": 0, "maximum": MAX_BUDGET}
        forms: dict[str, dict[str, Any]] = {
            "draft_tokens": {"type": "array", "items": count, "minItems": 1},
            "changes": {
                "type": "array",
                "items": {"type": "array", "prefixItems": [count, count], "items": False},
            },
        }
        words = {
            "share": "Share of the rounds, or of the time, with this allocation.",
            "draft_tokens": "Draft tokens of each client.",
            "changes": (
                "Differences from the previous entry: pairs of a client and its draft tokens."
            ),
        }
        return {
            "type": "array",
            "minItems": 1,
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "share": described(share, "share", words["share"]),
                            name: described(form, name, words[name]),
                        },
                        "required": ["share", name],
                        "additionalProperties": False,
                    }
                    for name, form in forms.items()
                ]
            },
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class FairGoodputPlan(Plan):
    """A plan that consists of long-run rates and a schedule of allocations that attains them.

    Parameters
    ----------
    goodput
        Goodput x_i of each client, in tokens per round or per second.
    mean_draft_tokens
        Mean number of draft tokens per round for each client.
    schedule
        Allocations, each with its share of the rounds or of the time.
    """

    goodput: NonNegatives = required()
    mean_draft_tokens: NonNegatives = required()
    schedule: Schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class FairGoodputProblem(Problem[FairGoodputPlan]):
    """Maximise a fair utility of the goodput of clients that share a token budget (paper 5).

    Parameters
    ----------
    acceptance_rates
        Probability a_i that a draft token of client i is accepted, given that all its predecessors
        were accepted.
    budget_tokens
        Maximum number C of draft tokens per round, over all clients.
    weights
        Weight w_i of each client in the utility. None means that every weight is 1.
    fairness
        Exponent g of the utility. The utility is the sum of w_i log x_i if g = 1, and the sum of
        w_i x_i^(1-g) / (1-g) otherwise. For g = 0, the utility is the weighted sum of the rates.
    max_draft_tokens
        Maximum number of draft tokens per round for each client. None means that the budget is the
        only limit.
    min_goodput
        Minimum goodput of each client, in tokens per round or per second. None means that there is
        no minimum.
    per
        Whether goodput is measured per "round" or per "second". With "second", the duration of a
        round is max_i(S_i draft_i + network_i) + overhead + verify sum S, computed from the four
        time parameters below. With "round", these parameters are ignored.
    draft_seconds_per_token
        Drafting time per token for each client, in seconds.
    network_seconds
        Network time per round for each client, in seconds.
    verify_overhead_seconds
        Part of the verification time per round that does not depend on the number of tokens, in
        seconds.
    verify_seconds_per_token
        Verification time per draft token, in seconds.

    Examples
    --------
    >>> from specopt import FairGoodputProblem, solve
    >>> problem = FairGoodputProblem(acceptance_rates=[0.9, 0.6, 0.3], budget_tokens=12)
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "fair-goodput"
    plan_type = FairGoodputPlan
    sense = "maximize"
    objective_label = "utility of the goodput"
    worth_label = "common rate with the same utility"

    acceptance_rates: HalfOpenUnits = required()
    budget_tokens: TokenBudget
    weights: Given[Annotated[Floats, Column(Positive)] | None, FloatsLike | None] = optional()
    fairness: Fairness = 1.0
    max_draft_tokens: OptionalTokenBudgets = optional()
    min_goodput: OptionalNonNegatives = optional()
    per: Literal["round", "second"] = "round"
    draft_seconds_per_token: OptionalNonNegatives = optional()
    network_seconds: OptionalNonNegatives = optional()
    verify_overhead_seconds: NonNegative | None = None
    verify_seconds_per_token: NonNegative | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        quickest = slowest = 1.0
        if self.per == "second":
            for name in (
                "draft_seconds_per_token",
                "network_seconds",
                "verify_overhead_seconds",
                "verify_seconds_per_token",
            ):
                if getattr(self, name) is None:
                    raise InvalidInput(f"{name}: missing; required when per is 'second'")
            with np.errstate(all="ignore"):
                quickest = self.round_seconds(np.zeros(self.clients, np.int64))
                slowest = self.round_seconds(self.max_tokens, self.budget_tokens)
            if quickest <= 0:
                raise InvalidInput(
                    "verify_overhead_seconds: expected a number > 0 when all network_seconds are 0,"
                    " got 0"
                )
        # the utility and its slope must be within the floating-point range
        with np.errstate(all="ignore"):
            least = 1.0 / slowest
            most = float((1.0 / (1.0 - self.acceptance_rates)).max()) / quickest
            weight = float(self.weight.sum())
            sizes = [
                weight * rate**power
                for power in (1.0 - self.fairness, 0.0, -self.fairness)
                for rate in map(np.float64, (least, most))
            ]
        longest = max(slowest, 1.0 / quickest)
        if not (max(longest, *sizes) <= LARGEST and min(sizes[:2]) >= 1.0 / LARGEST):
            name = "fairness" if max(longest, weight) <= LARGEST else "weights"
            name = name if longest <= LARGEST else "verify_overhead_seconds"
            raise InvalidInput(
                f"{name}: round times, weights and utility must be within the range of"
                f" floating-point numbers, got rounds of {quickest:g} to {slowest:g} s, a total"
                f" weight of {weight:g} and fairness {self.fairness:g}"
            )

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return len(self.acceptance_rates)

    @cached_property
    def weight(self) -> Floats:
        """Weight of each client. Every weight is 1 if the problem does not specify weights."""
        return frozen(np.ones(self.clients) if self.weights is None else self.weights)

    @cached_property
    def max_tokens(self) -> Ints:
        """Maximum number of draft tokens per round for each client, which is the smaller of the
        client's cap and the budget.
        """
        if self.max_draft_tokens is None:
            return frozen(np.full(self.clients, self.budget_tokens, np.int64))
        return frozen(np.minimum(self.max_draft_tokens, self.budget_tokens))

    @property
    def scale(self) -> tuple[float, float]:
        """A tuple of the clients' total weight and the fairness exponent, which `worth` and
        `widened` require.
        """
        return float(self.weight.sum()), self.fairness

    @classmethod
    def worth(cls, value: float, scale: Sequence[float] = ()) -> float:
        """Return the certainty equivalent of a utility.

        The certainty equivalent is the rate that yields the same utility if all clients have this
        rate. It is the weighted power mean of the rates, or the weighted geometric mean at fairness
        1. The computation uses logarithms to avoid underflow. If no rates have the utility `value`,
        the result is NaN. If `scale` is empty, the result is `value`.

        If the fairness exponent g is close to 1, the utility is about weight / (1 - g), and
        differences between plans are small compared with this value. Plans with the same utility in
        floating point may then have certainty equivalents whose relative difference is about 1e-16
        / |1 - g|. At g = 1.000001, these certainty equivalents may therefore differ in the tenth
        significant digit.
        """
        if not scale:
            return value
        weight, power = scale[0], 1.0 - scale[1]
        if power == 0.0:
            return math.exp(min(value / weight, LARGEST_EXPONENT))
        mean = value / weight * power
        return math.exp(min(math.log(mean) / power, LARGEST_EXPONENT)) if mean > 0 else math.nan

    @classmethod
    def widened(cls, bound: float, scale: Sequence[float] = ()) -> float:
        """Return an upper bound on the utility that is increased to allow for rounding errors.

        The increase corresponds to a relative change of `ROUNDING` in the certainty equivalent, and
        is at least `MIN_ULPS` units in the last place of the bound. The second rule matters at
        fairness close to 1, where different certainty equivalents may correspond to the same
        utility in floating point.
        """
        power = 1.0 - scale[1]
        return bound + max(
            ROUNDING * (scale[0] if power == 0.0 else power * bound), MIN_ULPS * math.ulp(bound)
        )

    def utility(self, goodput: Floats) -> float:
        """Return the utility of the clients' goodput rates, which must be positive."""
        if self.fairness == 1.0:
            return float((self.weight * np.log(goodput)).sum())
        power = 1.0 - self.fairness
        return float((self.weight * goodput**power).sum() / power)

    def log_common_rate(self, goodput: Floats) -> float:
        """Return the logarithm of the certainty equivalent of the clients' rates.

        The result is accurate even if different rates have the same utility in floating point.
        """
        shares = self.weight / self.weight.sum()
        logs = np.log(goodput)
        power = 1.0 - self.fairness
        if power == 0.0:
            return float(shares @ logs)
        # close to fairness 1, powers are close to 1: compute with their differences from 1
        if float(np.abs(power * logs).max()) < 0.5:
            return math.log1p(float(shares @ np.expm1(power * logs))) / power
        parts = np.log(self.weight) + power * logs
        largest = float(parts.max())
        return (
            largest + math.log(float(np.exp(parts - largest).sum()) / float(self.weight.sum()))
        ) / power

    def round_seconds(self, draft_tokens: Ints, verified: int | None = None) -> float:
        """Return the duration of a round, in seconds.

        Parameters
        ----------
        draft_tokens
            Number of draft tokens of each client. The slowest client determines the drafting and
            network time.
        verified
            Number of tokens that the server verifies. None means the sum of `draft_tokens`. If
            `draft_tokens` contains each client's maximum, the result is an upper bound on the
            duration of every round in which this number of tokens is verified.
        """
        verified = int(draft_tokens.sum()) if verified is None else verified
        assert self.draft_seconds_per_token is not None and self.network_seconds is not None
        assert (
            self.verify_overhead_seconds is not None and self.verify_seconds_per_token is not None
        )
        slowest = float((draft_tokens * self.draft_seconds_per_token + self.network_seconds).max())
        return slowest + self.verify_overhead_seconds + self.verify_seconds_per_token * verified

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: FairGoodputPlan) -> Evaluation:
        """Return the utility of the goodput that the schedule attains."""
        self.expect_fit(plan)
        goodput, _ = self.realised(plan.schedule)
        if not (goodput > 0).all():
            raise InvalidInput("schedule: the shares must give every client a positive rate")
        utility = self.utility(goodput)
        size = abs(utility)  # all terms have the same sign, except for logarithms
        if self.fairness == 1.0 and utility == 0.0:
            size = float((self.weight * np.abs(np.log(goodput))).sum())
        return Evaluation(utility, {"utility": utility}, size, self.log_common_rate(goodput))

    def violations(self, plan: FairGoodputPlan) -> list[str]:
        """Return messages about violated constraints and about inconsistencies in the plan.

        The constraints are the sum of the shares, the budget, the caps and the minimum rates. A
        plan is inconsistent if its schedule does not attain the declared rates and means.
        """
        found = super().violations(plan)
        if found:
            return found
        schedule = plan.schedule
        total = float(schedule.share.sum(dtype=np.longdouble))
        if abs(total - 1.0) > SCHEDULE_TOLERANCE:
            found.append(f"schedule: the shares sum to {total:.12g} instead of 1")
        # Python integers, because the sum of many budgets may exceed 64 bits
        spent = np.zeros(len(schedule), object)
        np.add.at(spent, schedule.entries, schedule.steps.astype(object))
        spent = np.cumsum(spent)
        found += self._first(
            spent > self.budget_tokens,
            lambda e: (
                f"schedule[{e}]: the draft tokens sum to {spent[e]}, but the budget is"
                f" {self.budget_tokens}"
            ),
        )
        if self.max_draft_tokens is not None:
            caps = self.max_draft_tokens
            found += self._first(
                schedule.tokens > caps[schedule.clients],
                lambda k: (
                    f"schedule[{schedule.entries[k]}]: client {schedule.clients[k]} has"
                    f" {schedule.tokens[k]} draft tokens, but at most {caps[schedule.clients[k]]}"
                    " are allowed"
                ),
            )
        goodput, tokens = self.realised(schedule)
        for name, declared, actual in (
            ("goodput", plan.goodput, goodput),
            ("mean_draft_tokens", plan.mean_draft_tokens, tokens),
        ):
            off = np.abs(declared - actual) > SCHEDULE_TOLERANCE * declared
            if actual is tokens and off.any():  # the terms of the mean may cancel
                left = np.cumsum(schedule.share[::-1])[::-1][schedule.entries]
                terms = np.bincount(schedule.clients, np.abs(schedule.steps) * left, self.clients)
                off &= np.abs(declared - actual) > SCHEDULE_TOLERANCE * terms
            found += self._first(
                off,
                lambda i, n=name, d=declared, a=actual: (
                    f"{n}[{i}]: the plan states {d[i]:.12g}, but the schedule gives {a[i]:.12g}"
                ),
            )
        if self.min_goodput is not None:
            least = self.min_goodput
            found += self._first(
                least > goodput + SCHEDULE_TOLERANCE * np.maximum(least, goodput),
                lambda i: (
                    f"min_goodput[{i}]: the schedule gives {goodput[i]:.12g}, but the minimum is"
                    f" {least[i]:.12g}"
                ),
            )
        return found

    def realised(self, schedule: Schedule) -> tuple[Floats, Floats]:
        """Return each client's goodput, and its mean number of draft tokens per round, under a
        schedule.
        """
        rounds = schedule.share
        if self.per == "second":
            rounds = schedule.share / [
                self.round_seconds(allocation) for _, allocation in schedule.allocations()
            ]
        # A change affects every round from its entry to the end of the schedule.
        left = np.cumsum(rounds[::-1].astype(np.longdouble))[::-1].astype(np.float64)[
            schedule.entries
        ]
        rates = self.acceptance_rates[schedule.clients]
        now = expected_tokens(rates, schedule.tokens)
        until_now = np.where(schedule.entries > 0, expected_tokens(rates, schedule.before), 0.0)
        goodput = np.bincount(schedule.clients, (now - until_now) * left, self.clients)
        tokens = np.bincount(schedule.clients, schedule.steps * left, self.clients)
        mean = np.maximum(0.0, tokens / (left[0] if left[0] > 0 else 1.0))
        return np.asarray(goodput, np.float64), np.asarray(mean, np.float64)

    def _defects(self, plan: FairGoodputPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem."""
        sizes = {
            "goodput": len(plan.goodput),
            "mean_draft_tokens": len(plan.mean_draft_tokens),
            "schedule[0].draft_tokens": plan.schedule.size,
        }
        return [
            f"{n}: expected {self.clients} entries, got {size}"
            for n, size in sizes.items()
            if size != self.clients
        ]

    @staticmethod
    def _first(wrong: Truths, sentence: Any) -> list[str]:
        """Return a message about the first of several similar violations, which also states how
        many more there are. Return an empty list if there are none.
        """
        count = int(np.count_nonzero(wrong))
        if not count:
            return []
        more = f" (and {count - 1} more of the same kind)" if count > 1 else ""
        return [sentence(int(np.argmax(wrong))) + more]
