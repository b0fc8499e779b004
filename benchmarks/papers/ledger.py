"""What five papers state, and what became of it: the checked-in data, and the record of the last
full run.
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
"""What the last run of each experiment found; `run.py --record` writes it."""

LEVEL = 0.1
"""A printed number comes out if ours is within 10 % of it."""

ABOVE = 1e-6
"""An order or a trend holds if the lead exceeds this: less is rounding."""

STATUSES = ("recomputed", "simulated", "audited", "proved", "refuted", "not-attempted")
THEOREMS = ("proved", "refuted")
CHECKS = ("can fail", "by construction", "by calibration", "identity")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Something that a paper states.

    Parameters
    ----------
    id
        Unique within the paper.
    place
        Where it stands, such as ``Figure 6(a)``.
    statement
        What it says, or what is measured to see whether it does.
    printed
        A number, the ends of a range, words, or None for an order or trend.
    unit
        Of the number, or what the measured number is: the statement holds if a "least saving" is
        above 0.
    one_sided
        Whether the paper says "up to" or "at least": more than `printed` is no failure.
    holds
        The range in which it holds, if `printed` does not say.
    check
        One of `CHECKS`: whether what is computed can contradict it at all.
    status
        One of `STATUSES`.
    by
        The experiment that computes it.
    test
        The test that proves or refutes it.
    reason
        Why it was not attempted, or does not come out.
    given
        What its experiment needs to know of it.
    """

    id: str
    place: str
    statement: str
    printed: Any = None
    unit: str = ""
    one_sided: bool = False
    holds: tuple[float, float] | None = None
    check: str = "can fail"
    status: str
    by: str = ""
    test: str = ""
    reason: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def range(self) -> tuple[float, float]:
        """Where a computed number must lie for the statement to hold."""
        if self.holds is not None:
            return self.holds
        if isinstance(self.printed, list):
            return self.printed[0], self.printed[1]
        if self.printed is None:
            return ABOVE, math.inf
        return (self.printed, math.inf) if self.one_sided else self.near

    @property
    def near(self) -> tuple[float, float]:
        """Where a computed number is about the printed one."""
        slack = (1e-6 if self.status == "audited" else LEVEL) * abs(self.printed)
        return self.printed - slack, self.printed + slack

    def agrees(self, ours: float) -> bool:
        """Whether the statement holds with a computed number."""
        low, high = self.range
        return low <= ours <= high


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """Something that a simulation needs and that the paper does not print.

    Parameters
    ----------
    name
        Unique within the paper.
    default
        What is taken.
    reason
        Why.
    low, high
        The plausible range of a number.
    log, integer
        Whether it is sampled by its logarithm, and whether it is whole.
    choices
        The plausible values, if it is no number or few.
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
        """Return the value at a place of its range, from 0 to 1."""
        if self.choices:
            return self.choices[min(int(place * len(self.choices)), len(self.choices) - 1)]
        span = self.high / self.low if self.log else self.high - self.low
        value = self.low * span**place if self.log else self.low + span * place
        return round(value) if self.integer else value


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: what it states, and what its simulations assume.

    Parameters
    ----------
    name, title
        As on the command line, and what it is about.
    identifiers
        All its figures, tables and numbered statements.
    statements
        By id.
    assumptions
        By name.
    experiments
        Which assumptions each needs.
    summary
        What it claims first, what holds, what does not, and under which readings; ``{item}`` is
        what was found.
    """

    name: str
    title: str
    identifiers: tuple[str, ...]
    summary: Sequence[str]
    statements: Mapping[str, Statement]
    assumptions: Mapping[str, Assumption]
    experiments: Mapping[str, Sequence[str]]

    def of(self, experiment: str) -> tuple[Statement, ...]:
        """Return the statements that an experiment computes."""
        return tuple(one for one in self.statements.values() if one.by == experiment)

    def box(self, experiment: str) -> tuple[Assumption, ...]:
        """Return the assumptions of an experiment."""
        return tuple(self.assumptions[name] for name in self.experiments[experiment])

    @property
    def module(self) -> Any:
        """Where its experiments are: a function each in ``EXPERIMENTS``."""
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
    """Return the record of the last full run: when, how, and per paper and statement what came
    out.
    """
    found: dict[str, Any] = json.loads(RECORD.read_text())
    return found


def entries(*papers: Paper) -> list[dict[str, Any]]:
    """Return the ledger, of all papers by default: an entry per statement, with what is recorded of
    it.
    """
    return [
        entry(one, said, record()["papers"].get(one.name, {}).get(said.id, {}))
        for one in papers or map(paper, TITLES)
        for said in one.statements.values()
    ]


def entry(of: Paper, said: Statement, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a paper states, and what a run found: as a record keeps it, empty if there was
    none.
    """
    row: dict[str, Any] = {
        "paper": of.name,
        "item": said.id,
        "place": said.place,
        "statement": said.statement,
        "printed": said.printed,
        "ours": found.get("ours"),
        "status": said.status,
        "assumptions": list(of.experiments.get(said.by, ())),
    }
    if "ours" in found:
        row |= {"holds": said.agrees(found["ours"]), "check": said.check}
    if "held" in found:
        row |= portion(found["held"], found["samples"])
    more: dict[str, Any] = {"unit": said.unit, "test": said.test, "reason": said.reason}
    more |= {key: found.get(key) for key in ("median", "deciding", "split")}
    if "near" in found:
        more["near"] = portion(found["near"], found["samples"])
    return row | {key: value for key, value in more.items() if value not in (None, "")}


def portion(held: int, samples: int) -> dict[str, Any]:
    """Return a share of samples, their number, and the exact 95 % interval of the share (Clopper
    and Pearson).
    """
    from scipy.special import betaincinv

    low = betaincinv(held, samples - held + 1, 0.025) if held else 0.0
    high = betaincinv(held + 1, samples - held, 0.975) if held < samples else 1.0
    return {
        "share": held / samples,
        "samples": samples,
        "interval": [round(float(end), 4) for end in (low, high)],
    }


def counts(listed: Sequence[Mapping[str, Any]], *, real: bool = False) -> dict[str, int]:
    """Return how many statements of the papers, or of ours on the real pair, came out how; `mapped`
    ones can fail.
    """
    own = [one for one in listed if one["item"].endswith(".real") == real]
    tried = [one for one in own if one.get("check") == CHECKS[0]]
    mapped = [one["share"] for one in tried if "share" in one]
    return {
        "statements": len(own),
        **{status: sum(one["status"] == status for one in own) for status in STATUSES},
        "can fail": len(tried),
        "hold by default": sum(one["holds"] for one in tried),
        "mapped": len(mapped),
        "everywhere": mapped.count(1.0),
        "nowhere": mapped.count(0.0),
    }
