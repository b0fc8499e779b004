"""Relations that optima keep: how the optimum changes when a problem does, as data that can be run one by one.

>>> from specopt import generate, solve
>>> from specopt.testing.relations import relation
>>> one = relation("draft-allocation", "one more token")
>>> one.reason
'every plan stays feasible'
>>> one.check(solve, generate("draft-allocation/uniform", clients=3, budget=5))
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput import FairGoodputProblem
from specopt.models.problem import Problem
from specopt.testing.answers import NotConformant, Solver, judged

Data = dict[str, Any]
Change = Callable[[Data, Random], Data | None]


def _itself(problem: Problem, objective: float) -> float:
    return objective


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How the optimum of a problem follows from that of another.

    Parameters
    ----------
    kind, name
        What it is of, and what changes.
    when
        The condition under which it holds.
    reason
        Why it holds.
    change
        From the JSON form of a problem and a source of random numbers to that of the changed problem; None where the
        condition does not hold.
    implied
        From a problem and its optimum to what the changed problem reaches at least.
    equal
        Whether it reaches exactly that.
    """

    kind: str
    name: str
    when: str = "always"
    reason: str
    change: Change
    implied: Callable[[Any, float], float] = _itself
    equal: bool = False

    def changed(self, problem: Problem, seed: int = 0) -> Problem | None:
        """Return the changed problem; None where the condition does not hold."""
        data = self.change(problem.to_dict(), Random(seed))
        return None if data is None else type(problem).from_dict(data)

    def check(self, solver: Solver, problem: Problem, *, seed: int = 0, tolerance: float = 1e-9) -> bool:
        """Check the relation with a solver that claims optima; return whether its condition holds.

        Parameters
        ----------
        solver
            From a problem to a plan, or to a result.
        problem
            What is changed.
        seed
            Of the change.
        tolerance
            Relative distance of objectives that counts as rounding.

        Raises
        ------
        NotConformant
            If the two answers contradict the relation.
        InvalidInput
            If the problem is of another kind.
        """
        if problem.kind != self.kind:
            raise InvalidInput(f"problem: expected one of {self.kind}, got {problem.kind}")
        other = self.changed(problem, seed)
        if other is None:
            return False
        first = judged(solver, problem)
        if first is None and not self.equal:
            return True
        second = judged(solver, other)
        if first is None or second is None:
            if first is not second:
                raise self._broken(problem, f"finds {_shown(first)}, and after the change {_shown(second)}")
            return True
        implied = self.implied(problem, first)
        behind = second > implied if problem.sense == "minimize" else second < implied
        apart = other.distance(implied, second, other.scale, max(abs(implied), abs(second)))
        if (behind or self.equal) and apart > tolerance:
            how = "exactly" if self.equal else "at most" if problem.sense == "minimize" else "at least"
            raise self._broken(problem, f"reaches {first!r}, thus {how} {implied!r} after the change, but {second!r}")
        return True

    def _broken(self, problem: Problem, what: str) -> NotConformant:
        return NotConformant(f"relation {self.name!r} ({self.reason}): {what}", problem)


def relations(kind: str | None = None) -> tuple[Relation, ...]:
    """Return the relations of a kind of problem, or all."""
    return tuple(one for one in RELATIONS if kind in (None, one.kind))


def relation(kind: str, name: str) -> Relation:
    """Return a relation by its kind and name.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    for one in relations(kind):
        if one.name == name:
            return one
    raise InvalidInput(f"name: expected one of {', '.join(one.name for one in relations(kind))}, got {name!r}")


def _shown(objective: float | None) -> str:
    return "no plan" if objective is None else f"{objective!r}"


# ---------------------------------------------------------------------------------------- ways to change a problem


def _permuted(*columns: str, of: str) -> Change:
    """Change the order of columns."""

    def change(data: Data, random: Random) -> Data:
        order = random.sample(range(len(data[of])), len(data[of]))
        found = {name: [data[name][i] for i in order] for name in columns if isinstance(data.get(name), list)}
        rows = {name: [[row[i] for i in order] for row in data[name]] for name in ("output_samples",) if name in data}
        return data | found | rows

    return change


def _scaled(factors: Mapping[str, float]) -> Change:
    """Multiply fields, all numbers inside of them included; the names of those inside have factors of their own."""

    def times(value: Any, factor: float) -> Any:
        if isinstance(value, dict):
            return {name: times(inner, factors.get(name, factor)) for name, inner in value.items()}
        if isinstance(value, list):
            return [times(inner, factor) for inner in value]
        return value * factor if factor != 1.0 and isinstance(value, int | float) else value

    return lambda data, random: {name: times(value, factors.get(name, 1.0)) for name, value in data.items()}


def _raised(field: str, change: Callable[[Any], Any], unless: Callable[[Data], bool] = lambda data: False) -> Change:
    """Change a field that is given, every entry of a column."""

    def raised(data: Data, random: Random) -> Data | None:
        value = data.get(field)
        if value is None or unless(data):
            return None
        return data | {field: [change(entry) for entry in value] if isinstance(value, list) else change(value)}

    return raised


def _set(field: str, to: Any, among: Sequence[Any] | None = None) -> Change:
    """Set a field, where it has one of some values; None: where it is given."""

    def change(data: Data, random: Random) -> Data | None:
        if (field not in data) if among is None else (data.get(field) not in among):
            return None
        return {name: value for name, value in data.items() if name != field} | ({} if to is None else {field: to})

    return change


def _likelier(rate: float) -> float:
    return rate + (0.999 - rate) / 4 if rate < 0.999 else rate


# ------------------------------------------------------------------------------------------------- what is known

RELAXED = "every plan stays feasible"
NAMES = "the objective does not know the order"
UNITS = "every time is twice as long"


def _serving() -> list[Relation]:
    kind = "serving-latency"
    columns = ("input_tokens", "output_tokens", "snr", "acceptance_rate", "arrival_seconds")
    seconds = ("draft_runtime", "verify_runtime", "arrival_seconds", "regroup_seconds")
    scale = dict.fromkeys(seconds, 2.0) | {"bandwidth_hz": 0.5}
    draft = _raised("draft_memory_bytes", lambda amount: 1.25 * amount)
    verify = _raised("verify_memory_bytes", lambda amount: 1.25 * amount)
    return [
        Relation(kind=kind, name="tasks permuted", reason=NAMES, change=_permuted(*columns, of="snr"), equal=True),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=_scaled(scale), equal=True,
                 implied=lambda problem, objective: 2.0 * objective),
        Relation(kind=kind, name="more bandwidth", when="no arrivals",
                 reason="all tasks are ready at once, after the slowest upload",
                 change=_raised("bandwidth_hz", lambda hertz: 1.5 * hertz, lambda data: "arrival_seconds" in data)),
        Relation(kind=kind, name="more draft memory", when="a limit is given", reason=RELAXED, change=draft),
        Relation(kind=kind, name="more verify memory", when="a limit is given", reason=RELAXED, change=verify),
        Relation(kind=kind, name="no limit of verify memory", when="a limit is given", reason=RELAXED,
                 change=_set("verify_memory_bytes", None)),
        Relation(kind=kind, name="longer speculation allowed", when="it is given", reason=RELAXED,
                 change=_raised("max_speculation_length", lambda length: length + 1)),
        Relation(kind=kind, name="any mechanism allowed", when="one with a draft model is fixed", reason=RELAXED,
                 change=_set("mechanism", "any", (None, "pipelined", "sequential"))),
    ]  # fmt: skip


def _chunking() -> list[Relation]:
    kind = "prompt-chunking"
    seconds = ("local_overhead_seconds", "local_seconds_per_token", "message_overhead_seconds", "link_latency_seconds",
               "head_seconds", "seconds")  # fmt: skip
    links = ("uplink_bytes_per_second", "downlink_bytes_per_second")
    scale = dict.fromkeys(seconds, 2.0) | dict.fromkeys(links, 0.5) | {"cloud_delay": 1.0}
    sizes = dict.fromkeys((*links, "bytes_per_token"), 2.0)
    earlier = "every event of every plan is as early or earlier"
    return [
        Relation(kind=kind, name="time scaled", reason=UNITS, change=_scaled(scale), equal=True,
                 implied=lambda problem, objective: 2.0 * objective),
        Relation(kind=kind, name="bytes scaled", reason="data and links grow alike", change=_scaled(sizes), equal=True),
        *(Relation(kind=kind, name=f"faster {link.partition('_')[0]}", reason=earlier,
                   change=_raised(link, lambda rate: 1.5 * rate)) for link in links),
        Relation(kind=kind, name="one more chunk", when="a cap is given", reason=RELAXED,
                 change=_raised("max_chunks", lambda count: count + 1)),
        Relation(kind=kind, name="no grid", when="a grid is given", reason=RELAXED, change=_set("grid_tokens", None)),
        Relation(kind=kind, name="chunks overlap their wait", when="they wait one after the other", reason=earlier,
                 change=_set("wait", "overlap", (None, "serial"))),
        Relation(kind=kind, name="chunks wait for nothing", when="they wait", reason=earlier,
                 change=_set("wait", "none", (None, "serial", "overlap"))),
        Relation(kind=kind, name="the last token comes down alone", when="all do", reason=earlier,
                 change=_set("download", "last", (None, "all"))),
    ]  # fmt: skip


def _allocation() -> list[Relation]:
    kind = "draft-allocation"

    def joined(data: Data, random: Random) -> Data:
        caps = {"max_draft_tokens": [*data["max_draft_tokens"], 3]} if "max_draft_tokens" in data else {}
        return data | caps | {name: [*data[name], 0.0] for name in ("acceptance_rates", "weights")}

    columns = ("acceptance_rates", "weights", "max_draft_tokens")
    return [
        Relation(kind=kind, name="clients permuted", reason=NAMES, equal=True,
                 change=_permuted(*columns, of="acceptance_rates")),
        Relation(kind=kind, name="weights scaled", reason="the objective is linear in them", equal=True,
                 change=_scaled({"weights": 2.0}), implied=lambda problem, objective: 2.0 * objective),
        Relation(kind=kind, name="one more token", reason=RELAXED, change=_raised("budget_tokens", lambda n: n + 1)),
        Relation(kind=kind, name="caps raised", when="caps are given", reason=RELAXED,
                 change=_raised("max_draft_tokens", lambda cap: cap + 1)),
        Relation(kind=kind, name="drafts likelier", reason="every plan gains from acceptance",
                 change=_raised("acceptance_rates", _likelier)),
        Relation(kind=kind, name="a client without weight", reason="it counts for nothing", change=joined, equal=True),
    ]  # fmt: skip


def _goodput() -> list[Relation]:
    kind = "fair-goodput"
    seconds = ("draft_seconds_per_token", "network_seconds", "verify_overhead_seconds", "verify_seconds_per_token")
    columns = ("acceptance_rates", "weights", "max_draft_tokens", "min_goodput", *seconds[:2])

    def slower(data: Data, random: Random) -> Data | None:
        if data.get("per", "round") == "round":
            return None
        return _scaled(dict.fromkeys(seconds, 2.0) | {"min_goodput": 0.5})(data, random)

    def halved(problem: FairGoodputProblem, objective: float) -> float:
        """Return the utility of half the rates."""
        from math import fsum, log

        if problem.fairness == 1.0:
            return objective - fsum(problem.weight) * log(2.0)
        return float(objective * 2.0 ** (problem.fairness - 1.0))

    return [
        Relation(kind=kind, name="clients permuted", reason=NAMES, equal=True,
                 change=_permuted(*columns, of="acceptance_rates")),
        Relation(kind=kind, name="weights scaled", when="weights are given", reason="the utility is linear in them",
                 change=lambda data, random: _scaled({"weights": 2.0})(data, random) if "weights" in data else None,
                 implied=lambda problem, objective: 2.0 * objective, equal=True),
        Relation(kind=kind, name="time scaled", when="rates are per second", reason="every rate is half as high",
                 change=slower, implied=halved, equal=True),
        Relation(kind=kind, name="one more token", reason=RELAXED, change=_raised("budget_tokens", lambda n: n + 1)),
        Relation(kind=kind, name="caps raised", when="caps are given", reason=RELAXED,
                 change=_raised("max_draft_tokens", lambda cap: cap + 1)),
        Relation(kind=kind, name="least rates lowered", when="least rates are given", reason=RELAXED,
                 change=_raised("min_goodput", lambda rate: 0.9 * rate)),
        Relation(kind=kind, name="drafts likelier", when="rates are per round",
                 reason="every schedule gains from acceptance",
                 change=_raised("acceptance_rates", _likelier, lambda data: data.get("per") == "second")),
    ]  # fmt: skip


def _batching() -> list[Relation]:
    kind = "verification-batch"
    columns = ("expected_tokens", "new_tokens", "cached_tokens", "request_memory_bytes", "deadline_seconds")

    def later(data: Data, random: Random) -> Data:
        return data | {"deadline_seconds": [due + 0.125 for due in data["deadline_seconds"]]}

    def joined(tokens: float, wait: float) -> Change:
        def change(data: Data, random: Random) -> Data:
            more = (tokens, 1, 0, 0.0, data["now_seconds"] + wait)
            return data | {name: [*data[name], one] for name, one in zip(columns, more, strict=True)}

        return change

    scale = dict.fromkeys(("now_seconds", "deadline_seconds", "guard_seconds", "estimator"), 2.0)
    return [
        Relation(kind=kind, name="requests permuted", reason=NAMES, equal=True,
                 change=_permuted(*columns, of="expected_tokens")),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=_scaled(scale), equal=True),
        Relation(kind=kind, name="bytes scaled", reason="needs and memory grow alike", equal=True,
                 change=_scaled({"memory_bytes": 2.0, "request_memory_bytes": 2.0})),
        Relation(kind=kind, name="more memory", reason=RELAXED, change=_raised("memory_bytes", lambda b: 1.25 * b + 1)),
        Relation(kind=kind, name="later deadlines", reason=RELAXED, change=later),
        Relation(kind=kind, name="one more request", reason=RELAXED, change=joined(1.0, 1.0)),
        Relation(kind=kind, name="a request that is late", reason="no batch may hold it", change=joined(100.0, -1.0),
                 equal=True),
    ]  # fmt: skip


def _control() -> list[Relation]:
    kind = "draft-control"
    links = ("uplink_bits_per_second", "downlink_bits_per_second")
    scale = {"draft_seconds_per_token": 2.0, "verify_seconds": 2.0, "states": 1.0, **dict.fromkeys(links, 0.5)}

    def permuted(data: Data, random: Random) -> Data:
        order = random.sample(range(len(data["states"])), len(data["states"]))
        return data | {"states": [data["states"][i] for i in order],
                       "transition": [[data["transition"][i][j] for j in order] for i in order]}  # fmt: skip

    def states(change: Callable[[Data], Data]) -> Change:
        return lambda data, random: data | {"states": [state | change(state) for state in data["states"]]}

    def longer(data: Data, random: Random) -> Data | None:
        low, high = data["draft_lengths"]
        return None if isinstance(data["verify_seconds"], list) else data | {"draft_lengths": [low, high + 1]}

    rates = states(lambda state: {"acceptance_rates": [_likelier(rate) for rate in state["acceptance_rates"]]})
    faster = states(lambda state: {name: 1.5 * state[name] for name in links if name in state})
    return [
        Relation(kind=kind, name="states permuted", reason=NAMES, change=permuted, equal=True),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=_scaled(scale), equal=True,
                 implied=lambda problem, objective: 0.5 * objective),
        Relation(kind=kind, name="longer drafts allowed", when="one verify time for all lengths", reason=RELAXED,
                 change=longer),
        Relation(kind=kind, name="drafts likelier", reason="every policy gains from acceptance", change=rates),
        Relation(kind=kind, name="faster links", reason="every iteration is as short or shorter", change=faster),
    ]  # fmt: skip


def _stopping() -> list[Relation]:
    kind = "draft-stopping"

    def longer(data: Data, random: Random) -> Data | None:
        lists = [data["round_seconds"], *(one["acceptance_rate"] for one in data["rounds"])]
        if any(isinstance(value, list) for value in lists):
            return None
        return data | {"max_draft_tokens": data["max_draft_tokens"] + 1}

    def bins(data: Data, random: Random) -> Data:
        order = random.sample(range(len(data["scores"]["after"])), len(data["scores"]["after"]))
        return data | {"scores": {name: [law[i] for i in order] for name, law in data["scores"].items()}}

    def split(data: Data, random: Random) -> Data:
        halves = [one | {"probability": one["probability"] / 2} for one in data["rounds"] for _ in range(2)]
        return data | {"rounds": halves}

    scale = {"round_seconds": 2.0, "draft_seconds_per_token": 2.0}
    return [
        Relation(kind=kind, name="scores renamed", reason="a policy knows scores by their laws alone", change=bins,
                 equal=True),
        Relation(kind=kind, name="classes split", reason="two classes of one law are one", change=split, equal=True),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=_scaled(scale), equal=True,
                 implied=lambda problem, objective: 0.5 * objective),
        Relation(kind=kind, name="faster drafts", reason="every round is as short or shorter",
                 change=_raised("draft_seconds_per_token", lambda seconds: 0.5 * seconds)),
        Relation(kind=kind, name="longer drafts allowed", when="no list by position", reason=RELAXED, change=longer),
    ]  # fmt: skip


RELATIONS: tuple[Relation, ...] = (
    *_serving(), *_chunking(), *_allocation(), *_goodput(), *_batching(), *_control(), *_stopping(),
)  # fmt: skip
