"""Run the benchmarks and write a dated table: ``python benchmarks/run.py [--smoke] [--only TEXT]
[-o FILE]``.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from pathlib import Path

import cold
import draft_allocation
import draft_control
import draft_stopping
import fair_goodput
import fair_goodput_changes
import fair_goodput_online
import figures
import limits
import placement
import placement_map
import placement_play
import portfolio
import prompt_chunking
import quantisation
import serving_latency
import serving_latency_served
import serving_online
import tuning
import tuning_rules
import verification_batch
import verification_long_run
import verification_server
from table import markdown

import specopt
from specopt.models.files import write_text

BENCHMARKS = (
    *cold.BENCHMARKS,
    *portfolio.BENCHMARKS,
    *serving_latency.BENCHMARKS,
    *serving_latency_served.BENCHMARKS,
    *serving_online.BENCHMARKS,
    *draft_allocation.BENCHMARKS,
    *draft_control.BENCHMARKS,
    *draft_stopping.BENCHMARKS,
    *placement.BENCHMARKS,
    *placement_map.BENCHMARKS,
    *placement_play.BENCHMARKS,
    *fair_goodput.BENCHMARKS,
    *fair_goodput_online.BENCHMARKS,
    *fair_goodput_changes.BENCHMARKS,
    *prompt_chunking.BENCHMARKS,
    *quantisation.BENCHMARKS,
    *verification_batch.BENCHMARKS,
    *verification_long_run.BENCHMARKS,
    *verification_server.BENCHMARKS,
    *tuning.BENCHMARKS,
    *tuning_rules.BENCHMARKS,
    *limits.BENCHMARKS,
)


def main() -> None:
    """Run the selected benchmarks, print each table when it is finished, and write all of them into
    the day's file at the end.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--smoke", action="store_true", help="tiny inputs: does everything still run?"
    )
    parser.add_argument("--only", default="", help="only benchmarks whose name contains this")
    parser.add_argument(
        "-o", "--output", type=Path, help="where to write; default: benchmarks/results/DATE.md"
    )
    arguments = parser.parse_args()
    tables = {}
    for benchmark in BENCHMARKS:
        if arguments.only in benchmark.name:
            print(f"running {benchmark.name} ...", file=sys.stderr, flush=True)
            tables[benchmark.name] = markdown(benchmark.name, benchmark.run(arguments.smoke))
            print(tables[benchmark.name], flush=True)
    if arguments.smoke and arguments.output is None:
        return
    today = datetime.date.today().isoformat()
    target = arguments.output or Path(__file__).parent / "results" / f"{today}.md"
    tables = {**recorded(target), **tables}
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores."
    head = f"# Benchmarks of specopt {specopt.__version__}, {today}\n\n{machine}\n\n"
    write_text(
        target, head + "\n".join(tables[one.name] for one in BENCHMARKS if one.name in tables)
    )
    if arguments.output is None:
        figures.write()


def recorded(path: Path) -> dict[str, str]:
    """Return the tables of a file by name, so that a partial run keeps the other tables of its
    day.
    """
    sections = path.read_text().split("\n## ")[1:] if path.exists() else []
    return {section.partition("\n")[0]: f"## {section.rstrip()}\n" for section in sections}


if __name__ == "__main__":
    main()
