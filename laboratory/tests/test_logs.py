"""Recording drafts, on a tiny pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION  # noqa: E402
from testbed.decoding import greedy  # noqa: E402
from testbed.logs import Recording, record, write_log  # noqa: E402
from testbed.prompts import Prompt  # noqa: E402
from testbed.recorded import RecordedDrafts, read_recorded  # noqa: E402
from testbed.tiny import tiny_draft_model, tiny_verify_model  # noqa: E402

PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8], [9, 10]]
ASKED = [Prompt("story", "a"), Prompt("code", "b"), Prompt("list", "c")]
HOW = Recording(draft_length=4, rounds=6, mass=1.0, seed=5)


def recorded(folder: Path, stop: int, first: int = 0) -> RecordedDrafts:
    """Record the prompts and read what was written."""
    columns = record(
        tiny_draft_model(), tiny_verify_model(), ASKED[first:], PROMPTS[first:], first, stop, HOW
    )
    write_log(columns, folder / "log.parquet", {"seed": HOW.seed})
    return read_recorded(folder)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> RecordedDrafts:
    """A log of answers that never end."""
    return recorded(tmp_path_factory.mktemp("log"), stop=-1)


def test_every_drafted_position_is_recorded(log: RecordedDrafts) -> None:
    """Tests that runs, rounds and outcomes are complete: accepted drafts, at most one rejection,
    and the drafts after it.
    """
    assert len(log) == len(PROMPTS) * len(HOW.temperatures) * HOW.rounds * HOW.draft_length
    outcomes = log.outcome.reshape(-1, HOW.draft_length)
    lengths = (outcomes == ACCEPTED).sum(axis=1)
    assert set(lengths) > {0, 1, 4}
    for row, length in zip(outcomes, lengths, strict=True):
        rest = HOW.draft_length - length
        assert row.tolist() == [ACCEPTED] * length + [FIRST_REJECTION][:rest] + [AFTER] * (rest - 1)
    assert (
        np.diff(log.draft_laws.starts) == 61 * (log.outcome != AFTER)
    ).all()  # all of the tiny vocabulary


def test_greedy_runs_accept_what_greedy_decoding_writes(log: RecordedDrafts) -> None:
    """Tests that accepted tokens of a greedy run are those of the verify model, and that rejected
    ones are not.
    """
    for prompt, tokens in enumerate(PROMPTS):
        run = log.select((log.prompt == prompt) & (log.temperature == 0.0))
        expected, _ = greedy(tiny_verify_model(), tokens, HOW.rounds * (HOW.draft_length + 1))
        place = 0
        for row in range(len(run)):
            if run.position[row] == 0 and row:
                place += 1  # the verify model's own token
            if run.outcome[row] == AFTER:
                continue
            assert (run.token[row] == expected[place]) == (run.outcome[row] == ACCEPTED)
            assert run.acceptance_rate[row] == float(run.outcome[row] == ACCEPTED)
            assert run.verify_laws[row][0][0] == expected[place]
            place += int(run.outcome[row] == ACCEPTED)


def test_what_is_said_of_distributions_follows_from_them(log: RecordedDrafts) -> None:
    """Tests that acceptance, entropies, margins and token probabilities are those of the
    distributions.
    """
    for row in np.flatnonzero(log.outcome != AFTER).tolist():
        q, p = np.zeros(61), np.zeros(61)
        for law, laws in ((q, log.draft_laws), (p, log.verify_laws)):
            tokens, probabilities = laws[row]
            assert (np.diff(probabilities) <= 0.0).all()
            law[tokens] = probabilities
            assert law.sum() + laws.rest[row] == pytest.approx(1.0, abs=3e-4)
        assert log.draft_probability[row] == pytest.approx(q[log.token[row]], rel=3e-4, abs=1e-9)
        assert log.verify_probability[row] == pytest.approx(p[log.token[row]], rel=3e-4, abs=1e-9)
        if log.temperature[row]:
            assert log.acceptance_rate[row] == pytest.approx(np.minimum(p, q).sum(), abs=1e-3)
        for law, entropy in ((q, log.draft_entropy), (p, log.verify_entropy)):
            assert entropy[row] == pytest.approx(
                -(law * np.log(np.maximum(law, 1e-300))).sum(), abs=3e-3
            )
        assert log.margin[row] == pytest.approx(np.diff(np.sort(q)[-2:])[0], abs=1e-3)


def test_outcomes_are_drawn_with_the_recorded_acceptance(tmp_path: Path) -> None:
    """Tests that over many rounds the number of accepted drafts equals the sum of the recorded
    acceptance rates.
    """
    how = Recording(temperatures=(1.0,), draft_length=3, rounds=60, seed=1)
    prompts = [[number, number + 1] for number in range(40)]
    asked = [Prompt("story", "")] * len(prompts)
    write_log(
        record(tiny_draft_model(), tiny_verify_model(), asked, prompts, 0, -1, how),
        tmp_path / "a.parquet",
        {},
    )
    log = read_recorded(tmp_path)
    judged = log.select(log.outcome != AFTER)
    rates = judged.acceptance_rate
    spread = np.sqrt((rates * (1.0 - rates)).sum())
    assert abs((judged.outcome == ACCEPTED).sum() - rates.sum()) < 4.0 * spread


def test_a_run_ends_with_its_answer(tmp_path: Path, log: RecordedDrafts) -> None:
    """Tests that nothing is recorded after the token that ends an answer, and that other runs are
    not affected.
    """
    stop = int(
        log.token[(log.prompt == 0) & (log.temperature == 0.0) & (log.outcome == ACCEPTED)][1]
    )
    ended = recorded(tmp_path, stop)
    for prompt in range(len(PROMPTS)):
        for temperature in HOW.temperatures:
            some, whole = (
                part.select((part.prompt == prompt) & (part.temperature == temperature))
                for part in (ended, log)
            )
            assert some.token.tolist() == whole.token[: len(some)].tolist()
            accepted = some.token[some.outcome == ACCEPTED].tolist()
            assert stop not in accepted[:-1]
    assert len(ended) < len(log)


def test_a_run_does_not_depend_on_its_batch(tmp_path: Path, log: RecordedDrafts) -> None:
    """Tests that a prompt recorded in another batch gives the same tokens and outcomes."""
    alone = recorded(tmp_path, -1, first=2)
    same = log.select(log.prompt == 2)
    assert alone.token.tolist() == same.token.tolist()
    assert alone.outcome.tolist() == same.outcome.tolist()


def test_as_much_of_a_distribution_is_recorded_as_is_asked_for(
    log: RecordedDrafts, tmp_path: Path
) -> None:
    """Tests that lists end with the token with which they reach the share, and that the rest is the
    probability of the others.
    """
    how = Recording(draft_length=4, rounds=6, mass=0.9, seed=5)
    columns = record(tiny_draft_model(), tiny_verify_model(), ASKED, PROMPTS, 0, -1, how)
    write_log(columns, tmp_path / "log.parquet", {})
    short = read_recorded(tmp_path)
    for mine, whole in ((short.draft_laws, log.draft_laws), (short.verify_laws, log.verify_laws)):
        for row in np.flatnonzero(log.outcome != AFTER)[::5].tolist():
            (tokens, chances), (every, all_chances) = mine[row], whole[row]
            assert tokens.tolist() == every[: len(tokens)].tolist()
            assert chances.sum() + mine.rest[row] == pytest.approx(1.0, abs=3e-4)
            assert all_chances[: len(tokens) - 1].sum() < 0.9 + 3e-4
            assert mine.rest[row] <= 0.1 + 3e-4
