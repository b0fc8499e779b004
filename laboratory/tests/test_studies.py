"""Studies of recorded drafts, on logs with known properties."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.draft_logs import draft_log
from papers.lattice_points import nearest_counts

from specopt.models.drafting import ACCEPTED, AFTER
from specopt.solvers.draft_stopping.prepare import window_plan
from specopt.solvers.draft_stopping.replay import replay
from specopt.solvers.drafting.predictors import fit_predictor
from testbed.prompts import KINDS
from testbed.recorded import RecordedDrafts, RecordedLaws
from testbed.studies.clients import clients
from testbed.studies.costs import Costs
from testbed.studies.overlap import rouge_2
from testbed.studies.quantising import nearest_of_list
from testbed.studies.rejections import PARTS, correlations, rejections
from testbed.studies.resampling import interval
from testbed.studies.run_lengths import run_lengths
from testbed.studies.stopping import stopping

ROUNDS, WINDOW = 10, 5


def recorded(
    prompts: int, *, signal: float = 1.0, rate: float = 0.6, seed: int = 0
) -> RecordedDrafts:
    """Return prompts with 10 rounds of 5 drafts, with the same easiness as in `draft_log`."""
    log = draft_log(prompts * ROUNDS, window=WINDOW, acceptance_rate=rate, signal=signal, seed=seed)
    count, rows = len(log), np.arange(len(log))
    starts, none = np.zeros(count + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    nothing = RecordedLaws(starts, none, np.zeros(0), np.ones(count))
    prompt = rows // (ROUNDS * WINDOW)
    zeros = np.zeros(count)
    return RecordedDrafts(
        prompt=prompt,
        kind=np.array(KINDS)[prompt % len(KINDS)],
        temperature=np.ones(count),
        seed=np.zeros(count, dtype=np.int64),
        round=rows // WINDOW % ROUNDS,
        position=rows % WINDOW,
        token=np.zeros(count, dtype=np.int64),
        outcome=log.outcomes,
        acceptance_rate=(log.outcomes == ACCEPTED).astype(np.float64),
        draft_probability=log.features[:, 0],
        verify_probability=zeros,
        draft_entropy=log.features[:, 1],
        verify_entropy=zeros,
        margin=log.features[:, 2],
        deviation=log.features[:, 3],
        draft_laws=nothing,
        verify_laws=nothing,
    )


def test_independent_drafts_are_geometric() -> None:
    """Tests that for equally likely drafts the errors of the geometric distribution are random, and
    that it chooses the same length as the rounds.
    """
    (found,) = run_lengths(recorded(400, signal=0.0))
    assert found.acceptance_rate.low < 0.6 < found.acceptance_rate.high
    assert max(map(abs, found.errors)) < 0.02
    assert found.variance_ratio == pytest.approx(1.0, abs=0.05)
    assert found.lost_by_the_law(Costs(0.01, 0.1, (0.1,))) < 0.01


def test_mixed_rounds_are_longer_than_the_law_says() -> None:
    """Tests that rounds of two kinds, with all or no drafts accepted, have the variance and the
    tokens of the mixture.
    """
    log = recorded(40)
    easy = log.round % 2 == 0
    outcome = np.where(easy, 1, np.where(log.position == 0, 0, -1))
    mixed = RecordedDrafts(**{**vars(log), "outcome": outcome})
    (found,) = run_lengths(mixed)
    assert found.tokens == (1.5, 2.0, 2.5, 3.0, 3.5)
    assert found.acceptance_rate.value == pytest.approx(5 / 6)
    assert found.variance_ratio > 1.5
    assert found.errors[0] > 0.2
    assert found.best_length(Costs(0.01, 0.1, (0.1,)), geometric=False) == 5
    assert found.best_length(Costs(0.01, 0.1, (0.03, 0.09, 0.1)), geometric=False) == 0
    assert found.lost_by_the_law(Costs(0.01, 0.1, (0.03, 0.09, 0.1))) == 0.0


def test_clients_tell_kinds_and_drift_apart() -> None:
    """Tests that a kind with decreasing acceptance is reported to drift, and one with constant
    acceptance is not.
    """
    log = recorded(160, signal=0.0)
    falls = (log.kind == KINDS[0]) & (log.round >= 5)
    low = RecordedDrafts(**{**vars(log), "acceptance_rate": np.where(falls, 0.2, 0.6)})
    found = {client.kind: client for client in clients(low)}
    assert found[KINDS[0]].drifts
    assert (found[KINDS[0]].early.value, found[KINDS[0]].late.value) == pytest.approx((0.6, 0.2))
    assert not found[KINDS[1]].drifts
    assert found[KINDS[1]].acceptance_rate.value == pytest.approx(0.6)


def test_intervals_are_of_prompts() -> None:
    """Tests that a hundred equal values of each prompt give the same interval as one value of
    each.
    """
    values = np.random.default_rng(0).normal(size=50)
    one = interval(values, np.arange(50))
    many = interval(np.repeat(values, 100), np.repeat(np.arange(50), 100))
    assert (one.value, one.low, one.high) == pytest.approx((many.value, many.low, many.high))
    assert one.high - one.low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(50), rel=0.1)


@pytest.mark.parametrize("temperature", [0.3, 3.0])
@pytest.mark.parametrize("resolution", [4, 16, 100])
def test_counts_from_a_list_are_those_of_the_whole_distribution(
    temperature: float, resolution: int
) -> None:
    """Tests that the nearest lattice point from 64 tokens equals that from all 1000, or that none
    is returned.
    """
    random = np.random.default_rng(0)
    told = 0
    for _ in range(20):
        law = np.sort(np.exp(random.normal(size=1000) * 3 / temperature))[::-1]
        law /= law.sum()
        whole, found = (
            nearest_counts(law, resolution),
            nearest_of_list(law[:64], float(law[64:].sum()), resolution),
        )
        if found is not None:
            told += 1
            assert found.tolist() == whole[:64].tolist()
            assert whole[64:].sum() == 0
        else:
            assert resolution > 16 or temperature > 1
    assert told or temperature > 1


def test_a_fixed_window_is_replayed_as_it_was_recorded() -> None:
    """Tests that a window of 3 yields the first three drafts of every recorded round."""
    log = recorded(8)
    zeros = np.zeros(len(log), dtype=np.int64)
    made, drafted = replay(
        window_plan(3, np.zeros(2, dtype=bool)), zeros, log.outcome, np.bincount(log.round_numbers)
    )
    accepted = (log.outcome == ACCEPTED).reshape(-1, WINDOW)
    assert (drafted == 3).all()
    assert made.tolist() == np.minimum(accepted.sum(axis=1), 3).tolist()


def test_stopping_gains_what_it_promises_where_its_model_holds() -> None:
    """Tests that on independent drafts stopping gains on unseen prompts, and about as much as
    predicted.
    """
    pytest.importorskip("sklearn")
    (found,) = stopping(recorded(240, signal=3.0, rate=0.7), Costs(0.02, 0.1, (0.1,)))
    assert found.promised > 0.05
    assert found.gain.low > 0.0
    assert found.gain.value == pytest.approx(found.promised, abs=0.04)
    assert found.best_fixed >= found.fixed
    assert found.area > 0.75


def test_history_tells_easy_prompts_from_hard_ones() -> None:
    """Tests that a predictor that sees earlier rounds is better than one that does not if prompts
    differ and features are misleading.
    """
    pytest.importorskip("sklearn")
    log, easy = recorded(240, signal=0.0, rate=0.35), recorded(240, signal=0.0, rate=0.85, seed=1)
    even = log.prompt // 8 % 2 == 0
    mixed = RecordedDrafts(**{**vars(log), "outcome": np.where(even, log.outcome, easy.outcome)})
    (blind,) = stopping(mixed, Costs(0.02, 0.1, (0.1,)))
    (knows,) = stopping(mixed, Costs(0.02, 0.1, (0.1,)), knows_history=True)
    assert blind.area < 0.6 < 0.7 < knows.area
    assert knows.stopping > blind.stopping


def test_a_predictor_that_knows_sends_accepted_drafts_only() -> None:
    """Tests that no draft is sent in vain if the draft probability determines the outcome, and that
    complete rounds have the known values.
    """
    log = recorded(48)
    accepted = log.outcome == ACCEPTED
    told = RecordedDrafts(**{**vars(log), "draft_probability": np.where(accepted, 0.9, 0.1)})
    for part in range(PARTS):
        (found,) = rejections(told, "logistic", part)
        assert (found.recall, found.specificity, found.accuracy, found.area) == (1.0, 1.0, 1.0, 1.0)
        assert found.on == (1.0,) * WINDOW and found.goes_on_after == 0.0
        mine = accepted[log.prompt // 8 % PARTS == part].reshape(-1, WINDOW)
        assert found.off == pytest.approx(
            [mine[:, :window].mean() for window in range(1, WINDOW + 1)]
        )
        assert found.by_position[0] == pytest.approx(mine[:, 0].mean())


def test_rounds_end_before_the_first_predicted_rejection() -> None:
    """Tests that the drafts sent with an imperfect predictor are those of a loop over the
    rounds.
    """
    log = recorded(48, signal=0.5)
    (found,) = rejections(log, "logistic", 1)
    judging = log.prompt // 8 % PARTS == 1
    model = fit_predictor(log.select(~judging).draft_log(), "logistic")
    mine = log.select(judging)
    goes_on = model.probability(mine.draft_log().features).reshape(-1, WINDOW) >= 0.5
    sent = kept = 0
    for says, outcomes in zip(
        goes_on.tolist(), mine.outcome.reshape(-1, WINDOW).tolist(), strict=True
    ):
        for says_on, outcome in zip(says, outcomes, strict=True):
            if not says_on:
                break
            sent, kept = sent + 1, kept + (outcome == ACCEPTED)
    assert found.on[-1] == kept / sent
    assert found.goes_on_after == goes_on.ravel()[mine.outcome == AFTER].mean()


def test_correlations_have_the_sign_of_the_trend() -> None:
    """Tests that a feature that increases with acceptance has correlation 1 over the bins, and its
    negative -1.
    """
    log, random = recorded(40), np.random.default_rng(0)
    judged = log.outcome != AFTER
    feature = random.uniform(size=len(log))
    columns = {
        "draft_probability": feature,
        "draft_entropy": 1.0 - feature,
        "margin": random.uniform(size=len(log)),
    }
    outcome = np.where(judged, (random.uniform(size=len(log)) < feature).astype(np.int64), AFTER)
    found = correlations(RecordedDrafts(**{**vars(log), **columns, "outcome": outcome}))
    assert found["draft_probability"][0] > 0.95 and found["draft_entropy"][0] < -0.95
    assert (
        found["draft_probability"][1] == pytest.approx(-found["draft_entropy"][1])
        and found["draft_probability"][1] > 0.4
    )
    assert abs(found["margin"][1]) < 0.1


def test_rouge_2_by_hand() -> None:
    """Tests that shares of word pairs equal those counted by hand, independent of case and
    punctuation.
    """
    assert rouge_2("the cat sat down", "The cat sat, on it.") == pytest.approx(2 * 2 / (3 + 4))
    assert rouge_2("a b a b", "a b") == pytest.approx(2 * 1 / (3 + 1))
    assert rouge_2("same words", "Same words!") == 1.0
    assert rouge_2("one", "one") == 0.0
