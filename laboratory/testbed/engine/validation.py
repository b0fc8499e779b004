"""Run `specopt validate` against the server of the engine. A part of the loads corrects the sweep,
and the others are withheld.

`python -m testbed.engine.validation` is the end of `make engine`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from specopt.instances.sweeps import read_sweeps
from specopt.measuring.client import Client
from specopt.measuring.drive import serving
from specopt.measuring.record import Record
from specopt.models.fields import read
from specopt.models.files import read_json, write_text
from specopt.models.load import Seen, name_of
from specopt.solvers.speculation_table.held import OfSweep
from testbed.engine.campaign import DRAFTERS, PYTHON, RUNS
from testbed.engine.loads import REQUESTS, TOKENS
from testbed.engine.serve import ENVIRONMENT, MAX_TOKENS
from testbed.prompts import prompts

RECORD = "validated.json"
BELIEVED = "ngram.csv"
LENGTHS = (None, 3, 5)
CORRECTING = [(concurrency, length) for concurrency in (1, 4, 16) for length in (None, 3)]
"""Loads that correct the sweep. All others are withheld."""

SECONDS = 20
"""Seconds of a load."""

SEED = 200
PORT = 8765
STARTS = 300
"""Maximum seconds until a server answers."""


def command(folder: Path, length: int | None) -> list[str]:
    """Return the command that starts a server with repetition drafts of the given length."""
    drafts = json.dumps({**DRAFTERS["ngram"], "num_speculative_tokens": length})
    own = [
        f"{name}={value}"
        for name, value in ENVIRONMENT.items()
        if name != "VLLM_ENABLE_V1_MULTIPROCESSING"
    ]
    words = [
        "env",
        *own,
        PYTHON,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(folder),
    ]
    words += ["--port", str(PORT), "--dtype", "float32", "--max-model-len", str(MAX_TOKENS)]
    words += ["--max-num-seqs", str(max(REQUESTS)), "--enforce-eager", "--no-enable-prefix-caching"]
    return [*words, *(["--speculative-config", drafts] if length else [])]


def measure(work: Path, runs: Path = RUNS) -> None:
    """Let `specopt validate` load a server of each draft length. Loads in the record are not
    repeated.
    """
    from testbed.checkpoints import tokenizer

    tokenizer().save_pretrained(work / "verify")
    asked = [" ".join(prompt.text.split()) for prompt in prompts(8, training=False, seed=SEED)]
    write_text(work / "prompts.txt", "\n".join(asked) + "\n")
    client = Client(endpoint=f"http://127.0.0.1:{PORT}")
    for length in LENGTHS:
        words = [
            sys.executable,
            "-P",
            "-m",
            "specopt",
            "validate",
            str(runs / BELIEVED),
            "--endpoint",
            client.endpoint,
        ]
        words += ["--loads", ",".join(map(str, REQUESTS)), "--draft-length", str(name_of(length))]
        words += [
            "--prompts",
            str(work / "prompts.txt"),
            "--tokens",
            str(TOKENS),
            "--seconds",
            str(SECONDS),
        ]
        with serving(
            command(work / "verify", length), client, STARTS, f"draft length {name_of(length)}"
        ):
            subprocess.run([*words, "--record", str(runs / RECORD)], check=True)


def off_withheld(runs: Path = RUNS) -> dict[str, dict[tuple[int, int | None], float]]:
    """Return predicted over measured output minus 1 for the withheld loads, "before" and "after"
    the correction.
    """
    record = read(Record, read_json(runs / RECORD), RECORD)
    believed = OfSweep(read_sweeps([runs / BELIEVED]), BELIEVED)
    known = [one for one in record.loads if _place(one) in CORRECTING]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corrected.csv")
        path.write_text(believed.corrected(known), encoding="utf-8")
        corrected = OfSweep(read_sweeps([path]), path.name)
    withheld = [one for one in record.loads if _place(one) not in CORRECTING]
    return {
        when: {
            _place(one): by.at(*_place(one))[0] / one.load.tokens_per_second - 1.0
            for one in withheld
        }
        for when, by in (("before", believed), ("after", corrected))
    }


def _place(one: Seen) -> tuple[int, int | None]:
    return one.concurrency, one.configured


if __name__ == "__main__":
    measure(Path("build/laboratory/engine"))
