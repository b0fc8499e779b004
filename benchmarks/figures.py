"""Collect every number stated in README and documentation, with its source: ``python -P
benchmarks/figures.py``.

This writes `docs/figures.json` from the newest recorded tables of the benchmarks and from values
that are cheap to compute. `docs/stated.json` lists the passages of the pages that contain these
numbers, with a key and a format in place of each number. A test compares all three.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import specopt
from specopt.api.library import best_known, saved
from specopt.models.files import write_text

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import placement_map  # type: ignore[import-not-found]  # noqa: E402 - benchmarks are no package
import serving_online  # noqa: E402 - as above
from papers.ledger import counts, entries  # noqa: E402 - as above

RECORD = ROOT / "docs" / "figures.json"
NUMBER = r"-?\d[\d,]*\.?\d*(?:e-?\d+)?"


@dataclass(frozen=True)
class Measured:
    """A number in a benchmark's recorded table.

    Parameters
    ----------
    table, row
        Names of the table and of its row.
    place
        Index of the number among those in the row's figure, from 0.
    """

    table: str
    row: str
    place: int = 0

    @property
    def source(self) -> str:
        """Where the number is recorded: the newest file that contains the table."""
        return f"benchmarks/results/{self._found()[0]}: {self.table}: {self.row}"

    def value(self) -> float:
        """Return the number."""
        return float(re.findall(NUMBER, self._found()[1])[self.place].replace(",", ""))

    def _found(self) -> tuple[str, str]:
        for path in sorted((ROOT / "benchmarks" / "results").glob("*.md"), reverse=True):
            section = path.read_text().partition(f"\n## {self.table}\n")[2].partition("\n## ")[0]
            for line in section.splitlines():
                cells = [cell.strip() for cell in line.split(" | ")]
                if cells[0].removeprefix("| ") == self.row:
                    return path.name, cells[1]
        raise LookupError(f"{self.table}: {self.row}: not in benchmarks/results")


@dataclass(frozen=True)
class Computed:
    """A number that is computed on demand.

    Parameters
    ----------
    source
        Description of the value.
    value
        Function that computes it.
    """

    source: str
    value: Callable[[], float]


def _proven() -> float:
    return sum(best_known(name).status == "optimal" for name in saved())


_ONLINE = "fair goodput online: microseconds per round"
_SLACK, _ONE_CLASS = (
    "verification in the long run: mixed classes",
    "verification in the long run: one class",
)
_LOAD = "verification in the long run: load"
_BOUNDED, _CACHE = (
    "verification in the long run: bounded cache",
    "{} GB, prompts of 150, alpha 0.73, 2-4-6-8: slack against fcfs",
)
_CONTROL, _CHUNKS = (
    "draft-control: the optimal policy against the baselines",
    "prompt-chunking: time to first token on the paper's testbed",
)
_TTFT = (
    "N = {}, P = {}, 3 ms per message: TTFT of Eq. 3 and of the best equal chunks, over the"
    " default's {} ms"
)
_INDEXED, _CORES = (
    "continuous-serving: a time-indexed program",
    "serving-latency: exact on two cores",
)
_ARRIVALS = (
    "arrivals, 100 tasks, 0.8 requests per second: best policy, bound, program in intervals of"
    " 0.4 s"
)
_K300 = (
    "paper-1/K300, proven: seconds of a processor, those of the busier thread with two workers,"
    " ratio"
)
_HELD_OUT = "batch {}, a benchmark held out but for its {} at K = 3: {}"
_BOTH, _ALONE = "throughput and acceptance", "acceptance alone"


def _paper_1(mechanism: str) -> Computed:
    def least() -> float:
        problem = specopt.generate("serving-latency/paper-1", seed=1)
        found = specopt.solve(dataclasses.replace(problem, mechanism=mechanism))  # type: ignore[call-arg]
        assert found.status == "optimal" and found.objective is not None
        return round(found.objective, 3)  # processors differ in the last digits

    return Computed(f"proven minimum of paper-1, K = 100, seed 1, {mechanism}, in seconds", least)


def _turn(trace: str) -> Computed:
    source = f"docs/recorded/load.csv: requests per second at which drafting stops paying, {trace}"
    return Computed(source, lambda: round(serving_online.recorded_turning_point(trace), 4))


def _map(row: int, place: int) -> Computed:
    def number() -> float:
        return float(
            re.findall(NUMBER, placement_map.summary(placement_map.recorded())[row].figure)[place]
        )

    return Computed(
        f"docs/recorded/placement-map.csv: device {row}, number {place} of the summary", number
    )


def _ledger(name: str, *origin: str) -> Computed:
    return Computed("the ledger of statements", lambda: counts(entries(), *origin)[name])


def _tuned() -> float:
    """Return the gain of the first result in README."""
    sweep = str(ROOT / "tests/data/sweeps/specbundle-excerpt.json")
    command = ["-P", "-m", "specopt", "tune", sweep, "--engine", "sglang", "--json"]
    shown = subprocess.check_output([sys.executable, *command])
    return round(float(json.loads(shown)["speedup"]), 3)


FIGURES: dict[str, Measured | Computed] = {
    **{
        f"ledger.{key}": _ledger(name)
        for key, name in (
            ("statements", "statements"),
            ("mapped", "sampled"),
            ("everywhere", "hold at all points"),
            ("nowhere", "hold at no point"),
        )
    },
    "ledger.real": _ledger("sampled", "real pair"),
    "library.instances": Computed("the instance library: instances", lambda: len(saved())),
    "library.proven": Computed("the instance library: proven optimal", _proven),
    "sd.7b": _paper_1("pipelined"),
    "ar.7b": _paper_1("autoregressive"),
    "load.azure": _turn("Azure 2023, conversations"),
    "load.burstgpt": _turn("BurstGPT"),
    "known.gap": Measured(
        "serving-latency: known output lengths, certified",
        "length-aware, 1.1B-7B, K = 1,000, known lengths, 20 seeds",
        1,
    ),
    "anew.gap": Measured(
        "continuous-serving: against fixed batches",
        "rebatching, 1.1B-7B, K = 1000, known lengths: largest gap",
    ),
    "served.best": Measured(_INDEXED, _ARRIVALS, 0),
    "served.bound": Measured(_INDEXED, _ARRIVALS, 1),
    "served.program": Measured(_INDEXED, _ARRIVALS, 2),
    "workers.k300.one": Measured(_CORES, _K300, 0),
    "workers.k300.two": Measured(_CORES, _K300, 1),
    "workers.k300": Measured(_CORES, _K300, 2),
    "workers.k1000": Measured(_CORES, "paper-1/K1000, 40 s, not proven: ratio"),
    "workers.k200": Measured(_CORES, "equal-inputs/K200, 40 s, not proven: ratio"),
    "allocate.microseconds": Measured(
        "draft-allocation: one round of a controller",
        "fast.allocate, N = 8, C = 20: mean of 10,000 calls",
    ),
    "goodput.online.microseconds": Measured(_ONLINE, "robust, N = 8, C = 20"),
    "slack.over.fcfs": Measured(_SLACK, "prompts of 150 tokens: slack against fcfs"),
    "slack.over.edf": Measured(
        _SLACK, "prompts of 150 tokens: slack against edf, batches capped alike"
    ),
    "slack.over.fcfs.12GB": Measured(_BOUNDED, _CACHE.format(12)),
    "slack.over.fcfs.12GB.worst": Measured(_BOUNDED, _CACHE.format(12), 1),
    "slack.over.fcfs.9GB": Measured(_BOUNDED, _CACHE.format(9)),
    "slack.over.fcfs.9GB.worst": Measured(_BOUNDED, _CACHE.format(9), 1),
    "slack.over.fcfs.one-class": Measured(_ONE_CLASS, "slack against fcfs, all of 8 tokens/s"),
    "slack.idle": Measured(
        _LOAD, "13 workloads, fcfs below 80 % busy: least speed of a class over that of fcfs"
    ),
    "slack.450.slack": Measured(_LOAD, "450 devices, prompts of 70 tokens: too slow of 450", 0),
    "slack.450.fcfs": Measured(_LOAD, "450 devices, prompts of 70 tokens: too slow of 450", 1),
    "slack.450.edf": Measured(_LOAD, "450 devices, prompts of 70 tokens: too slow of 450", 2),
    "slack.microseconds": Measured(
        "verification in the long run: one decision", "slack, 200 pending"
    ),
    "optimal.tokens-per-second": Measured(_CONTROL, "alternating: optimal, myopic, best-static", 0),
    "myopic.tokens-per-second": Measured(_CONTROL, "alternating: optimal, myopic, best-static", 1),
    "chunks.eq3.low": Measured(_CHUNKS, _TTFT.format(351, 4, 443)),
    "chunks.eq3.high": Measured(_CHUNKS, _TTFT.format(2000, 4, 2255)),
    "chunks.eq3.one-gpu.low": Measured(_CHUNKS, _TTFT.format(351, 1, 487)),
    "chunks.eq3.one-gpu.high": Measured(_CHUNKS, _TTFT.format(2000, 1, 2298)),
    **{
        f"placement.play.{key}": Measured("placement played: cycles", f"{row}: entries within 5 %")
        for key, row in (
            ("full", "b >= 8, all"),
            ("small", "b < 8, all"),
            ("light", "lightly loaded, all"),
            ("pool", "b >= 8, pool"),
            ("pool.small", "b < 8, pool"),
            ("pool.light", "lightly loaded, pool"),
        )
    },
    **{
        f"placement.map.{key}": _map(row, place)
        for key, row, place in (
            ("fast", 0, 0),
            ("fast.cells", 0, 1),
            ("fast.lost", 0, 3),
            ("even", 1, 0),
            ("even.lost", 1, 3),
            ("slow", 2, 0),
        )
    },
    "tuning.sglang": Computed("specopt tune tests/data/sweeps/specbundle-excerpt.json", _tuned),
    "tuning.regret.mean": Measured(
        "tuning from real sweeps", _HELD_OUT.format(1, _BOTH, "regret"), 0
    ),
    "tuning.regret.worst": Measured(
        "tuning from real sweeps", _HELD_OUT.format(1, _BOTH, "regret"), 1
    ),
    "tuning.acceptance-alone.error": Measured(
        "tuning from real sweeps", _HELD_OUT.format(8, _ALONE, "error of throughput")
    ),
}

sys.path.append(str(ROOT / "laboratory"))


def _laboratory() -> dict[str, Computed]:
    """Return the figures of the laboratory, which are computed from its raw records."""
    import report  # type: ignore[import-not-found]  # the laboratory is no package

    return {
        key: Computed(
            f"laboratory/results.md, from laboratory/records: {key}", lambda value=value: value
        )
        for key, value in report.figures().items()
    }


def record() -> dict[str, dict[str, Any]]:
    """Return value and source of every figure."""
    every = FIGURES | _laboratory()
    return {key: {"value": one.value(), "source": one.source} for key, one in sorted(every.items())}


def write() -> None:
    """Write the record with one line per figure."""
    lines = [f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in record().items()]
    write_text(RECORD, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
