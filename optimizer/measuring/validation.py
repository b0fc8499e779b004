"""A prediction held against a server: loads driven and kept one by one, what they say, and what is to be corrected."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from specopt.console.streams import say
from specopt.measuring.client import PARTS, Client, ServerFailed
from specopt.measuring.external import External
from specopt.measuring.prediction import LEVEL, Prediction, Seen, misses, name_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import read
from specopt.models.files import json_text, read_json, write_text
from specopt.models.position_acceptance import PositionAcceptance


@dataclass(frozen=True)
class Record:
    """The loads that were seen; `settings` says what makes them comparable."""

    settings: str
    loads: list[Seen] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, settings: str) -> Record:
        """Return the record in a file, or an empty one; `InvalidInput` if the file is none, or of other settings."""
        found: Record = read(cls, read_json(path), str(path)) if path.exists() else cls(settings)
        if found.settings != settings:
            raise InvalidInput(
                f"{path}: expected loads of {settings}; got {found.settings}; --record takes another file"
            )
        return found


def drive(
    record: Record, path: Path, client: Client, prediction: Prediction, loads: Sequence[int], length: int | None,
    other: External | None,
) -> None:  # fmt: skip
    """Measure every load that a record lacks, by the client or by another program, and write the record after each.

    Raises
    ------
    ServerFailed
        If the server fails under a load; the record keeps what was measured.
    """
    known = {(one.concurrency, one.configured) for one in record.loads}
    speeds = {load: prediction.at(load, length)[0] for load in loads if (load, length) not in known}  # refused now
    for load, speed in speeds.items():
        found = client.run(load) if other is None else other.run(load, length, speed)
        if min(found.counted, default=0.0) < 0.0:
            raise ServerFailed(f"at concurrency {load}: the counters went down, as if the server had started anew")
        record.loads.append(Seen(load, length, found))
        write_text(path, json_text(dataclasses.asdict(record), indent=1) + "\n")
        say(f"concurrency {load}, draft length {name_of(length)}: {found.tokens_per_second:.4g} tokens/s")


def _acceptance(seen: Sequence[Seen]) -> dict[str, Any] | None:
    """Return acceptance by position of the longest drafts, from the engine's counters; None: it has none."""
    counts = [one.load.counted for one in seen if any(one.load.counted)]
    longest = max(map(len, counts), default=0)
    if not longest:
        return None
    drafts, tokens, *accepted = np.sum([of for of in counts if len(of) == longest], axis=0)
    return PositionAcceptance.from_totals(drafts, tokens, accepted, LEVEL).to_dict()


def report(prediction: Prediction, seen: Sequence[Seen]) -> dict[str, Any]:
    """Return predicted against measured output with intervals, the order of options, and what is to be corrected."""
    rows: list[dict[str, Any]] = []
    for one in seen:
        speed, low, high, _ = prediction.at(*one.place)
        measured = one.load.tokens_per_second
        rows.append({
            "concurrency": one.concurrency,
            "draft_length": name_of(one.place[1]),
            "predicted": speed,
            "band": [low, high],
            "measured": measured,
            "interval": _limits(measured, one.load.deviation, PARTS),
            "error": speed / measured - 1.0,
        })  # fmt: skip
    pairs = [(a, b) for a, b in combinations(rows, 2) if a["concurrency"] == b["concurrency"]]
    ends = [np.array([a["interval"], b["interval"]]) for a, b in pairs]
    apart = [pair for pair, of in zip(pairs, ends, strict=True) if of[:, 0].max() > of[:, 1].min()]
    right = sum((a["predicted"] < b["predicted"]) == (a["measured"] < b["measured"]) for a, b in apart)
    return {
        "loads": rows,
        "median_error": float(np.median([abs(row["error"]) for row in rows])),
        "order": {"pairs": len(pairs), "separated": len(apart), "right": right},
        "factors": _factors(prediction, seen),
        "acceptance": _acceptance(seen),
    }


def _factors(prediction: Prediction, seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """Return measured over predicted by input, with limits of the mean, and what that does to the output."""
    found = []
    for length in dict.fromkeys(one.place[1] for one in seen):
        tokens, late, _ = misses(prediction, [one for one in seen if one.place[1] == length])
        of_tokens, of_steps, of_idle = prediction.inputs
        steps = of_idle if length == 0 else of_steps
        for what, logs, sign, source in (("tokens", tokens, 1, of_tokens), ("seconds", late, -1, steps)):
            if logs.any():
                mean, deviation = float(logs.mean()), float(logs.std(ddof=min(1, len(logs) - 1))) / len(logs) ** 0.5
                found.append({
                    "of_a_step": what,
                    "draft_length": name_of(length),
                    "factor": np.exp(mean),
                    "interval": _limits(np.exp(mean), deviation, len(logs)),
                    "output": np.exp(sign * mean) - 1.0,
                    "in": source,
                })  # fmt: skip
    return found


def _limits(mean: float, deviation: float, parts: int) -> list[float]:
    """Return the limits of a mean from the standard error of its logarithm."""
    from scipy.stats import t

    reach = float(np.exp(t.ppf(0.5 + 0.5 * LEVEL, max(1, parts - 1)) * deviation))
    return [mean / reach, mean * reach]
