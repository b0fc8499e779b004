"""Campaigns: every trial of an experiment is played several times in random order, and saved after
each.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from testbed.pairs import about, check_pair
from testbed.processes import Laboratory
from testbed.records import Keep, Record, to_plain


class Settings(Protocol):
    """The settings of an experiment: a dataclass of numbers with these fields."""

    seed: int
    repeats: int


class Experiment(Protocol):
    """Interface of a module of `testbed.experiments`. An optional `conclude` computes predictions
    after the last play.
    """

    KIND: str

    def prepare(self, laboratory: Laboratory, settings: Any, keep: Keep) -> dict[str, Any]:
        """Return the content of the record before the plays: measurements, problems, and trials
        with predictions.
        """

    def carry_out(
        self, laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
    ) -> dict[str, Any]:
        """Play a trial once. Return the measurements, named as in predictions, and the details."""


def run(
    experiment: Experiment,
    pair: str,
    settings: Any,
    folder: Path,
    *,
    tell: Callable[[str], None] | None = None,
) -> Path:
    """Play an experiment, or the missing trials of one begun on the same day, and return the file
    of the record.

    Parameters
    ----------
    experiment
        The experiment.
    pair
        The pair of models.
    settings
        Its settings.
    folder
        Folder of the records.
    tell
        Receives lines about the progress.
    """
    check_pair(pair)
    name = Path(pair).stem
    date = datetime.datetime.now(datetime.UTC).date()
    head: dict[str, Any] = {
        "kind": experiment.KIND,
        "pair": name,
        "settings": to_plain(asdict(settings)),
    }
    head["draft"] = about(pair)
    record = Record.begin(folder / f"{date}-{experiment.KIND}-{name}.json", head)
    data = record.data
    with Laboratory(pair) as laboratory:
        if not data["trials"]:
            data |= experiment.prepare(laboratory, settings, record.keep)
            record.save()
        rounds = np.random.default_rng(settings.seed)
        total, done = settings.repeats * len(data["trials"]), 0
        for repeat in range(settings.repeats):
            for index in rounds.permutation(len(data["trials"])).tolist():
                trial = data["trials"][index]
                done += 1
                if len(trial["measured"]) > repeat:
                    continue
                trial["measured"].append(to_plain(experiment.carry_out(laboratory, data, trial)))
                record.save()
                if tell is not None:
                    tell(
                        f"{done} of {total}: scene {trial['scene'] + 1}, {trial['label']},"
                        f" {trial['methods'][0]}"
                    )
    if hasattr(experiment, "conclude"):
        experiment.conclude(data)
        record.save()
    return record.path
