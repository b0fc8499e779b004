"""The raw files of the laboratory in the sources: they are complete and consistent, and pages agree
with them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path

import inputs
import numpy as np
import pytest
import report
from oracles.laboratory_records import check_record
from pyarrow import parquet

from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION
from testbed.__main__ import run
from testbed.experiments import settings_of
from testbed.prompts import KINDS, prompts
from testbed.recorded import RecordedDrafts, read_recorded
from testbed.records import lacking, read_record, to_plain
from testbed.studies.rejections import rejections

ROOT = Path(__file__).parents[2]
LABORATORY = ROOT / "laboratory"
RECORDS = sorted((LABORATORY / "records").glob("*.json"))
TEMPERATURES = {0.0, 0.5, 1.0}


@cache
def log() -> RecordedDrafts:
    """Return all recorded drafts."""
    return read_recorded(LABORATORY / "logs")


def test_there_are_records() -> None:
    """Tests that the folder of these tests exists."""
    assert RECORDS


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: str(path.stem))
def test_records_follow_from_their_raw_numbers(path: Path) -> None:
    """Tests that problems, predictions and totals of a record follow from its measurements."""
    data = read_record(path)
    assert data["pair"] != "tiny"
    check_record(data)
    assert any(trial["measured"] for trial in data["trials"])


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: str(path.stem))
def test_repetitions_are_those_that_were_asked_for(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a record has every repetition of its settings, and is rejected without one of
    them.
    """
    record = read_record(path)
    assert all(
        len(trial["measured"]) >= record["settings"]["repeats"] for trial in record["trials"]
    )
    assert lacking(record) == [] and record["kind"] in {one["kind"] for one in report.records()}
    assert run(["compare", str(path)]) == 0
    record["trials"][-1]["measured"].pop()
    (said,) = lacking(record)
    (tmp_path / path.name).write_text(json.dumps(record))
    assert run(["compare", str(tmp_path / path.name)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: str(path.stem))
def test_the_command_plays_what_was_recorded(path: Path) -> None:
    """Tests that `make testbed` plays every recorded kind, with the settings of the record and the
    version of torch.
    """
    record = read_record(path)
    settings = settings_of(record["kind"], record["pair"], {})
    assert to_plain(dataclasses.asdict(settings)) == record["settings"]
    made = (ROOT / "Makefile").read_text()
    assert (
        record["kind"]
        in next(line for line in made.splitlines() if line.startswith("PLAYED := ")).split()
    )
    assert f"PAIR := {record['pair']}\n" in made
    assert (
        f"torch=={record['versions']['torch']}\n" in (LABORATORY / "requirements.txt").read_text()
    )


def test_records_and_logs_are_of_the_shipped_draft_model() -> None:
    """Tests that everything was recorded with the shipped weights, and that these and the log files
    are small.
    """
    weights = (LABORATORY / "draft.safetensors").read_bytes()
    digest = hashlib.sha256(weights).hexdigest()
    files = sorted((LABORATORY / "logs").glob("*.parquet"))
    notes = [json.loads(parquet.read_schema(path).metadata[b"recording"]) for path in files]
    assert (
        {one["draft_sha256"] for one in notes}
        == {read_record(path)["draft"]["sha256"] for path in RECORDS}
        == {digest}
    )
    assert len(weights) < 12e6
    assert sum(path.stat().st_size for path in files) < 6e6


def test_prompts_of_every_kind_ran_at_every_temperature() -> None:
    """Tests that at least 400 prompts are recorded, each of its kind and at each temperature."""
    known = np.array([prompt.kind for prompt in prompts(51, training=False)])
    runs = np.unique(np.stack([log().prompt, 10 * log().temperature]), axis=1)
    assert len(np.unique(runs[0])) >= 400
    assert runs.shape[1] == len(np.unique(runs[0])) * len(TEMPERATURES)
    assert set(runs[1] / 10) == TEMPERATURES
    assert (log().kind == known[log().prompt]).all()
    assert set(log().kind) == set(KINDS)


def test_rounds_are_whole() -> None:
    """Tests that every round has accepted tokens, at most one rejection, and the drafts after
    it.
    """
    first = np.flatnonzero(np.diff(log().round_numbers, prepend=-1))
    assert (log().position[first] == 0).all()
    before, after = log().outcome[:-1], log().outcome[1:]
    same = np.diff(log().round_numbers) == 0
    assert (after[same & (before == ACCEPTED)] != AFTER).all()
    assert (after[same & (before != ACCEPTED)] == AFTER).all()
    assert (log().outcome[first] != AFTER).all()


def test_greedy_runs_keep_what_the_verify_model_finds_likeliest() -> None:
    """Tests that greedy runs accept a draft if and only if it is the verify model's most probable
    token.
    """
    judged = np.flatnonzero((log().temperature == 0.0) & (log().outcome != AFTER))
    likeliest = log().verify_laws.tokens[log().verify_laws.starts[judged]]
    accepted = log().outcome[judged] == ACCEPTED
    assert ((log().token[judged] == likeliest) == accepted).all()
    assert (log().acceptance_rate[judged] == accepted).all()


def test_acceptance_lies_between_what_the_distributions_allow() -> None:
    """Tests that 1 - TV is at least the common mass of both lists of most probable tokens, and at
    most this plus both rests.

    A token may be in one list and in the rest of the other one.
    """
    judged = np.flatnonzero((log().temperature > 0.0) & (log().outcome != AFTER))
    for number in judged[::29].tolist():
        (drafts, q), (verified, p) = log().draft_laws[number], log().verify_laws[number]
        _, mine, theirs = np.intersect1d(drafts, verified, return_indices=True)
        shared = float(np.minimum(q[mine], p[theirs]).sum())
        most = shared + log().draft_laws.rest[number] + log().verify_laws.rest[number]
        assert shared - 1e-3 <= log().acceptance_rate[number] <= most + 1e-3


def test_as_many_drafts_are_accepted_as_the_distributions_say() -> None:
    """Tests that the number of accepted drafts equals the sum of 1 - TV, within four standard
    deviations.
    """
    judged = (log().temperature > 0.0) & (log().outcome != AFTER)
    rates, accepted = log().acceptance_rate[judged], log().outcome[judged] == ACCEPTED
    deviation = float(np.sqrt((rates * (1.0 - rates)).sum()))
    assert abs(int(accepted.sum()) - float(rates.sum())) < 4.0 * deviation
    assert (log().outcome[judged] == FIRST_REJECTION).sum() == (~accepted).sum()


def test_pages_say_what_the_raw_files_say() -> None:
    """Tests that the page of results, its table and the stated acceptance follow from the raw
    files.
    """
    assert (LABORATORY / "results.md").read_text() == report.report()
    assert report.summary() in (ROOT / "docs" / "laboratory.md").read_text()
    quoted = json.loads((LABORATORY / "draft.json").read_text())["acceptance"]
    assert f"an acceptance of\n{quoted:.3f}" in (LABORATORY / "README.md").read_text()


def test_the_picture_shows_the_recorded_points() -> None:
    """Tests that the picture contains the digest of its points."""
    said = (LABORATORY / "predicted-measured.svg").read_text()
    assert report.digest() in said


def test_what_reproductions_take_is_condensed_from_raw_files() -> None:
    """Tests that the data of the papers' experiments follow from logs, distributions and texts,
    with predictors within a rounding step.
    """
    kept = json.loads(inputs.TARGET.read_text())
    assert set(kept) == set(inputs.PARTS)
    for name in ("statistics", "acceptance", "laws", "texts"):
        assert json.loads(json.dumps(inputs.condensed(name))) == kept[name], name
    for line in rejections(log().select(log().temperature == 1.0), "logistic", 2):
        (told,) = (
            one
            for one in kept["rejections"]
            if (one["temperature"], one["predictor"], one["part"]) == (1.0, "logistic", 2)
        )
        assert told["on"] == pytest.approx(line.on, abs=2e-3) and told["area"] == pytest.approx(
            line.area, abs=2e-3
        )
