"""What belongs to one serving engine, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.prices import USUAL, Prices
from specopt.solvers.speculation_table.schedule import Schedule

Config = dict[str, Any]
"""JSON-like data with the engine's own keys."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How one engine takes the drafts per batch size.

    Parameters
    ----------
    name
        On the command line.
    config
        From a schedule and the engine's version, where this matters: what the engine takes; None:
        leave speculation out. Raises `InvalidInput` where the engine has no option for it.
    notes
        From the same: what an operator must know beside the configuration.
    batch
        Its option that limits the batch.
    setup
        From what drafts: the engine's own options for it, beside the draft lengths.
    single
        Whether the engine takes one draft length for every batch size.
    prices
        What a table costs.
    """

    name: str
    config: Callable[[Schedule, str | None], Config | None]
    notes: Callable[[Schedule, str | None], tuple[str, ...]]
    batch: str
    setup: Callable[[Setup], Config]
    single: bool = False
    prices: Prices = USUAL

    def configured(self, schedule: Schedule, version: str | None, setup: Setup) -> Config | None:
        """Return what the engine takes for a schedule and what drafts; None: leave speculation
        out.
        """
        found = self.config(schedule, version)
        own = self.setup(setup)
        return (
            None
            if found is None
            else {key: value for key, value in (found | own).items() if value is not None}
        )


def method(setup: Setup, known: Sequence[str]) -> str | None:
    """Return the longest of an engine's methods that the name of a drafter begins with; None: it is
    none of them.
    """
    name = setup.drafter.lower().replace("-", "_")
    return max((one for one in known if name.startswith(one.lower())), key=len, default=None)


def leave_out(option: str, schedule: Schedule) -> str:
    """Return the note that speculation does not pay, with what it would reach."""
    single = schedule.best_single()
    reached = (
        f": the best draft length, {single[0]}, reaches {single[1]:.3f}x of no speculation"
        if single
        else ""
    )
    return (
        f"leave {option} out{reached}; an engine set up to speculate with 0 drafts is slower than"
        " one that is not"
    )


def tail(schedule: Schedule) -> str:
    """Return the note on batches beyond the schedule, for engines that carry the last draft length
    on.
    """
    return (
        f"batches beyond {schedule.largest_batch} carry the last draft length,"
        f" {schedule.ranges[-1][2]}, on: limit the engine's batch, or measure larger ones"
    )


def other_rules(known: str, version: str | None) -> tuple[str, ...]:
    """Return the note on a version whose rules are not those that a file of this package keeps."""
    if version is None or version == known:
        return ()
    return (f"the rules are those of {known}; {version} may have others: check its documentation",)
