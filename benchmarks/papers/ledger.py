"""The ledger of five papers: their statements, the assumptions of our simulations, and the results
of the last full run.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

RECORD = DATA / "record.json"
"""Results of the last run of each experiment; `run.py --record` writes this file."""

LEVEL = 0.1
"""A printed number is reproduced if ours differs from it by at most this share."""

ABOVE = 1e-6
"""An order or a trend holds if the measured lead exceeds this; smaller leads are rounding."""

STATUSES = ("recomputed", "simulated", "audited", "proved", "held", "refuted", "not-attempted")
THEOREMS = ("proved", "held", "refuted")
CHECKS = ("can fail", "by construction", "by calibration", "identity")
ORIGINS = ("paper", "our check", "real pair")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of a paper, or a check that we add to it.

    Parameters
    ----------
    id
        Name of the statement, unique within the paper.
    place
        Place in the paper, such as ``Figure 6(a)``.
    statement
        The statement, or the quantity that decides whether it holds.
    printed
        Printed value: a number, the ends of a range, words, or None for an order or a trend.
    unit
        Unit of the number, or name of the measured quantity. A statement without a printed value
        holds if a quantity such as "least saving" is positive.
    one_sided
        Whether the paper prints "up to" or "at least", so that more than `printed` is no failure.
    holds
        Range of values for which the statement holds; None derives it from `printed`.
    check
        One of `CHECKS`; only "can fail" means that the computation can contradict the statement.
    origin
        One of `ORIGINS`: a statement of the paper, a check that the paper does not make, or a
        statement of the paper with data of the laboratory's pair of models.
    status
        One of `STATUSES`.
    by
        Experiment that computes the number.
    test
        Test that proves or refutes the statement, or checks it on instances.
    instances
        Number of instances on which a statement of status "held" was checked.
    tolerance
        Tolerance of that check.
    reason
        Why the statement was not attempted, or why it does not hold.
    given
        Other values that the experiment needs.
    """

    id: str
    place: str
    statement: str
    printed: Any = None
    unit: str = ""
    one_sided: bool = False
    holds: tuple[float, float] | None = None
    check: str = CHECKS[0]
    origin: str = ORIGINS[0]
    status: str
    by: str = ""
    test: str = ""
    instances: int = 0
    tolerance: str = ""
    reason: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def range(self) -> tuple[float, float]:
        """Range of computed values for which the statement holds."""
        if self.holds is not None:
            return self.holds
        if isinstance(self.printed, list):
            return self.printed[0], self.printed[1]
        if self.printed is None:
            return ABOVE, math.inf
        return (self.printed, math.inf) if self.one_sided else self.near

    @property
    def near(self) -> tuple[float, float]:
        """Range of computed values that count as the printed one."""
        slack = (ABOVE if self.status == "audited" else LEVEL) * abs(self.printed)
        return self.printed - slack, self.printed + slack

    @property
    def criterion(self) -> str:
        """Range of computed values for which the statement holds, in words."""
        low, high = self.range
        if self.holds is None and not isinstance(self.printed, list):
            if self.printed is None:
                return "above 0"
            if not self.one_sided:
                return "as printed" if self.status == "audited" else f"within {100 * LEVEL:g} %"
        return f"at least {low:g}" if math.isinf(high) else f"{low:g} to {high:g}"

    def agrees(self, ours: float) -> bool:
        """Return whether the statement holds for a computed value."""
        low, high = self.range
        return low <= ours <= high


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """A value that a simulation needs and that the paper does not print.

    Parameters
    ----------
    name
        Name of the assumption, unique within the paper.
    default
        Value of the default run.
    reason
        Reason for the default and the range.
    low
        Lowest plausible number.
    high
        Highest plausible number.
    log
        Whether samples are uniform in the logarithm.
    integer
        Whether samples are rounded to integers.
    choices
        Plausible values, if the assumption is a choice.
    """

    name: str
    default: Any
    reason: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    integer: bool = False
    choices: tuple[Any, ...] = ()

    def at(self, place: float) -> Any:
        """Return the value at a position from 0 to 1 in the range."""
        if self.choices:
            return self.choices[min(int(place * len(self.choices)), len(self.choices) - 1)]
        span = self.high / self.low if self.log else self.high - self.low
        value = self.low * span**place if self.log else self.low + span * place
        return round(value) if self.integer else value


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper with its statements and the assumptions of its simulations.

    Parameters
    ----------
    name
        Name on the command line.
    title
        Topic of the paper.
    identifiers
        All figures, tables and numbered statements of the paper.
    statements
        Statements by id.
    assumptions
        Assumptions by name.
    experiments
        Names of the assumptions of each experiment.
    summary
        Five sentences on the paper; ``{item}`` stands for the recorded share of a statement.
    """

    name: str
    title: str
    identifiers: tuple[str, ...]
    summary: Sequence[str]
    statements: Mapping[str, Statement]
    assumptions: Mapping[str, Assumption]
    experiments: Mapping[str, Sequence[str]]

    def of(self, experiment: str) -> tuple[Statement, ...]:
        """Return the statements that an experiment decides."""
        return tuple(one for one in self.statements.values() if one.by == experiment)

    def box(self, experiment: str) -> tuple[Assumption, ...]:
        """Return the assumptions of an experiment."""
        return tuple(self.assumptions[name] for name in self.experiments[experiment])

    @property
    def module(self) -> Any:
        """Module that holds the functions of the experiments in ``EXPERIMENTS``."""
        return import_module(f"papers.{self.name.replace('-', '_')}")


TITLES = {
    "paper-1": "serving latency: pipelined batches across edge and base station",
    "paper-2": "verification batching under speed targets (WISP)",
    "paper-3": "draft control over a changing channel: quantise, sample, verify",
    "paper-4": "prompt chunking and parallel drafting (HAT)",
    "paper-5": "fair goodput of many clients (GoodSpeed)",
}


@cache
def paper(name: str) -> Paper:
    """Return a paper by name."""
    data = tomllib.loads((DATA / f"{name}.toml").read_text())
    known = {one.name for one in fields(Statement)} - {"given"}
    statements = {}
    for line in data["statements"]:
        given = {key: value for key, value in line.items() if key not in known}
        said: dict[str, Any] = {
            key: tuple(value) if key == "holds" else value
            for key, value in line.items()
            if key in known
        }
        if said["id"].endswith(".real"):
            said["origin"] = ORIGINS[2]
        statements[line["id"]] = Statement(**said, given=given)
    assumptions = {
        key: Assumption(name=key, **line | {"choices": tuple(line.get("choices", ()))})
        for key, line in data["assumptions"].items()
    }
    return Paper(
        name=name,
        title=TITLES[name],
        identifiers=tuple(data["identifiers"]),
        statements=statements,
        summary=data["summary"],
        assumptions=assumptions,
        experiments=data["experiments"],
    )


@cache
def record() -> Mapping[str, Any]:
    """Return the record of the last full run: its date and seeds, and the result of each
    statement.
    """
    found: dict[str, Any] = json.loads(RECORD.read_text())
    return found


def entries(*papers: Paper) -> list[dict[str, Any]]:
    """Return an entry for each statement of some papers, by default of all, with its recorded
    result.
    """
    return [
        entry(one, said, record()["papers"].get(one.name, {}).get(said.id, {}))
        for one in papers or map(paper, TITLES)
        for said in one.statements.values()
    ]


def entry(of: Paper, said: Statement, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a statement with the result of a run in the form of the record; the
    result may be empty.
    """
    row: dict[str, Any] = {
        "paper": of.name,
        "item": said.id,
        "place": said.place,
        "statement": said.statement,
        "printed": said.printed,
        "ours": found.get("ours"),
        "status": said.status,
        "origin": said.origin,
        "assumptions": list(of.experiments.get(said.by, ())),
    }
    if "ours" in found:
        row |= {
            "holds": said.agrees(found["ours"]),
            "criterion": said.criterion,
            "check": said.check,
        }
    if "held" in found:
        row |= portion(found["held"], found["samples"])
    more = {key: getattr(said, key) for key in ("unit", "test", "tolerance", "reason")}
    more |= {key: found.get(key) for key in ("median", "deciding", "split")}
    if said.status == "held":
        more["instances"] = said.instances
    if "near" in found:
        more["near"] = portion(found["near"], found["samples"])
    return row | {key: value for key, value in more.items() if value not in (None, "")}


def portion(held: int, samples: int) -> dict[str, Any]:
    """Return the share of samples for which a statement holds, their number, and the exact 95 %
    interval of the share (Clopper and Pearson).
    """
    from scipy.special import betaincinv

    low = betaincinv(held, samples - held + 1, 0.025) if held else 0.0
    high = betaincinv(held + 1, samples - held, 0.975) if held < samples else 1.0
    return {
        "share": held / samples,
        "samples": samples,
        "interval": [round(float(end), 4) for end in (low, high)],
    }


def counts(listed: Sequence[Mapping[str, Any]], origin: str = ORIGINS[0]) -> dict[str, int]:
    """Return the number of statements of an origin by status and by result.

    The numbers from "can fail" on are those of computed statements that the computation can
    contradict; the last three are of those that were computed at sampled assumptions.
    """
    own = [one for one in listed if one["origin"] == origin]
    tried = [one for one in own if one.get("check") == CHECKS[0]]
    shares = [one["share"] for one in tried if "share" in one]
    return {
        "statements": len(own),
        **{status: sum(one["status"] == status for one in own) for status in STATUSES},
        "can fail": len(tried),
        "hold at the defaults": sum(one["holds"] for one in tried),
        "sampled": len(shares),
        "hold at all points": shares.count(1.0),
        "hold at no point": shares.count(0.0),
    }
