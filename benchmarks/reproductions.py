"""Run experiments of the papers and record what came out.

``python -P benchmarks/reproductions.py [PAPER[/EXPERIMENT]...] [SAMPLES]``, all of them by default.

Writes `optimizer/reproductions/data/record.json`, from which `specopt reproduce --list`, README and documentation take
their numbers. A full run takes about a quarter of an hour.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from specopt.models.files import write_text
from specopt.reproductions.experiment import run
from specopt.reproductions.ledger import TITLES, paper

RECORD = Path(__file__).parents[1] / "optimizer" / "reproductions" / "data" / "record.json"
SAMPLES, SEEDS = 64, 5


def main(*names: str, samples: int = SAMPLES) -> None:
    """Run the experiments of some papers, or single ones, or all; what was recorded of others stays."""
    for name in names or TITLES:
        one, _, only = name.partition("/")
        for experiment in [only] if only else paper(one).experiments:
            began = time.process_time()
            found = run(paper(one), experiment, samples=samples, seeds=SEEDS).findings
            print(f"{one}, {experiment}: {time.process_time() - began:.0f} s of processor time", flush=True)
            kept = json.loads(RECORD.read_text())["papers"] if RECORD.exists() else {}
            known = kept.get(one, {}) | {finding.said.id: finding.to_dict() for finding in found}
            kept[one] = {item: known[item] for item, said in paper(one).statements.items() if said.by and item in known}
            write_text(RECORD, _text({"date": date.today().isoformat(), "seeds": SEEDS}, kept))


def _text(head: dict[str, Any], papers: dict[str, Any]) -> str:
    """Return the record as JSON, a line per statement."""
    blocks = []
    for name in TITLES:
        lines = [f"{json.dumps(item)}: {json.dumps(one)}" for item, one in papers.get(name, {}).items()]
        blocks.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    first = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    return "{\n" + first + '"papers": {\n' + ",\n".join(blocks) + "\n}}\n"


if __name__ == "__main__":
    counts = [int(one) for one in sys.argv[1:] if one.isdigit()]
    main(*(one for one in sys.argv[1:] if not one.isdigit()), samples=(*counts, SAMPLES)[0])
