"""A record of load measurements, saved after each measurement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specopt.console.streams import say
from specopt.measuring.client import Client
from specopt.measuring.external import External
from specopt.models.errors import InvalidInput, ServerFailed
from specopt.models.fields import read
from specopt.models.files import json_text, read_json, write_text
from specopt.models.load import Seen, name_of
from specopt.models.position_acceptance import PositionAcceptance


@dataclass(frozen=True)
class Record:
    """A record of load measurements that are comparable, because all have the same settings."""

    settings: str
    loads: list[Seen] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, settings: str) -> Record:
        """Read the record in a file, or return an empty record if the file does not exist.

        Raises
        ------
        InvalidInput
            If the file is not a record, or if the record has different settings.
        """
        found: Record = read(cls, read_json(path), str(path)) if path.exists() else cls(settings)
        if found.settings != settings:
            raise InvalidInput(
                f"{path}: expected loads with the settings {settings}; got {found.settings}; choose"
                " another file with --record"
            )
        for number, one in enumerate(found.loads):
            if any(one.load.counted):
                drafts, tokens, *accepted = one.load.counted
                name = f"{path}: loads[{number}].load.counted"
                try:
                    PositionAcceptance.from_totals(drafts, tokens, accepted)
                except InvalidInput as error:
                    raise InvalidInput(f"{name}: {error}") from None
        return found


def drive(
    record: Record,
    path: Path,
    client: Client,
    speeds: Mapping[int, float],
    length: int | None,
    other: External | None,
) -> None:
    """Measure the loads that a record lacks, and save the record after each measurement.

    Parameters
    ----------
    record
        Record to which loads are added.
    path
        File in which the record is saved.
    client
        Client that generates the load.
    length
        Draft length with which the server is configured.
    other
        External program that generates the load instead of the client; None to use the client.
    speeds
        Mapping from the number of concurrent requests to the expected throughput.

    Raises
    ------
    ServerFailed
        If the server fails under a load. The record contains all earlier loads.
    """
    known = {one.concurrency for one in record.loads if one.configured == length}
    for load, speed in speeds.items():
        if load in known:
            continue
        found = client.run(load) if other is None else other.run(load, length, speed)
        if min(found.counted, default=0.0) < 0.0:
            raise ServerFailed(
                f"at concurrency {load}: the counters went down, as if the server had restarted"
            )
        record.loads.append(Seen(load, length, found))
        write_text(path, json_text(dataclasses.asdict(record), indent=1) + "\n")
        say(f"concurrency {load}, draft length {name_of(length)}: {found}")
