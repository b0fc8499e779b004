"""The class `Engine`, which describes the configuration of a serving engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.models.sweep import ONLY, Setup
from specopt.solvers.speculation_table.prices import USUAL, Prices
from specopt.solvers.speculation_table.schedule import Schedule

Config = dict[str, Any]
"""Configuration of an engine as JSON-compatible data, by configuration key."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Description of how speculative decoding is configured in a serving engine.

    Parameters
    ----------
    name
        Name of the engine on the command line.
    config
        Function that returns the configuration for a schedule and a version of the engine, or None
        if the engine should not speculate. The function raises `InvalidInput` if the engine cannot
        be configured for the schedule.
    notes
        Function that returns notes for the operator, given the schedule, the version of the engine
        and the configuration.
    option
        Name of the engine's option that enables speculation.
    batch
        Name of the engine's option that limits the batch size.
    setup
        Function that returns the engine options for a setup, which is a drafter with its mode. The
        options exclude the draft lengths. The function returns None if the engine does not support
        the mode or token trees.
    single
        Whether the engine accepts only a single draft length for all batch sizes.
    prices
        Costs of speculation in this engine, which are used to compute a speculation table.
    """

    name: str
    config: Callable[[Schedule, str | None], Config | None]
    notes: Callable[[Schedule, str | None, Config], tuple[str, ...]]
    option: str
    batch: str
    setup: Callable[[Setup], Config | None]
    single: bool = False
    prices: Prices = USUAL

    def written(
        self, schedule: Schedule, version: str | None, setup: Setup = ONLY
    ) -> tuple[Config | None, tuple[str, ...]]:
        """Return the configuration for a schedule and a setup, and notes for the operator.

        The configuration is None if speculation does not pay off, or if the engine cannot be
        configured for the setup. In the latter case, a note lists the settings to enter by hand.
        """
        found, own = self.config(schedule, version), self.setup(setup)
        if found is None:
            single = schedule.best_single()
            reached = (
                f": the best draft length, {single[0]}, reaches {single[1]:.3f}x the throughput"
                " without speculation"
                if single
                else ""
            )
            note = (
                f"leave {self.option} out{reached}; an engine set up to speculate with 0 drafts is"
                " slower than one that is not"
            )
            return None, (note,)
        if own is None or (setup.mode != "fixed" and len(schedule.ranges) > 1):
            lengths = ", ".join(
                f"{drafts} at batch sizes {low} to {high}" for low, high, drafts in schedule.ranges
            )
            trees = f", top-k {setup.topk}" if setup.topk > 1 else ""
            note = (
                f"no configuration of {self.name} is written for this option; set by hand what was"
                f" measured: drafter {setup.drafter or '(unnamed)'}, mode {setup.mode}{trees},"
                f" draft length {lengths}"
            )
            return None, (note,)
        config = {key: value for key, value in (found | own).items() if value is not None}
        return config, self.notes(schedule, version, config)


def method(setup: Setup, known: Sequence[str]) -> str | None:
    """Return the engine's name for the drafting method of a setup.

    This is the longest of the known method names that is a prefix of the drafter's name, or None if
    there is no such prefix.
    """
    name = setup.drafter.lower().replace("-", "_")
    return max((one for one in known if name.startswith(one.lower())), key=len, default=None)


def tail(schedule: Schedule) -> str:
    """Return a note about batch sizes above the largest batch size in a schedule.

    The note applies to engines that use the last draft length for such batch sizes.
    """
    return (
        f"batches beyond {schedule.largest_batch} use the last draft length,"
        f" {schedule.ranges[-1][2]}; limit the engine's batch, or measure larger batches"
    )


def other_rules(known: str, version: str | None) -> tuple[str, ...]:
    """Return a note if the configuration rules of a version may differ from those of the known
    version.
    """
    if version is None or version == known:
        return ()
    return (f"the rules are those of {known}; check whether those of {version} differ",)
