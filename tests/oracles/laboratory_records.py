"""What must hold of any laboratory record, recomputed from its raw numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from specopt.models.fields import parse
from specopt.models.problem import problem_type
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from testbed.calibration import acceptance_rate
from testbed.cloud_delay import fit_cloud_delay
from testbed.experiments import (
    draft_control,
    fair_goodput,
    placement,
    serving_latency,
    verification_batch,
)
from testbed.explanation import explain, undisturbed_seconds

CLOSE_LOGITS = 1e-3
"""In single precision the order of sums may decide between logits that are closer than this, and
nothing else may.
"""

TABLE_MOVED = 0.05
"""Median change of measured times in a table."""

ROUNDED = 2e-6
"""Records keep seconds to the microsecond."""

PLAYED_AGAIN = 5
"""Of so many trials of the verifier one is played again under noise, which takes most of the time
of these checks.
"""


def check_record(data: dict[str, Any]) -> None:
    """Check that problems follow from measurements, predictions from problems, and totals from raw
    times.
    """
    assert data["trials"]
    for trial in data["trials"]:
        for measured in trial["measured"]:
            for difference in measured.get("differences", []):
                assert difference["margin"] <= CLOSE_LOGITS
    CHECKS[data["kind"]](data)


def _planned(data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield every trial with its problem and its plan, which must be feasible."""
    for trial in data["trials"]:
        fields = data["problems"][trial["problem"]]
        problem: Any = problem_type(fields["kind"]).from_dict(fields)
        plan = problem.plan_type.from_dict(trial["plan"])
        assert problem.violations(plan) == []
        yield trial, problem, plan


def check_serving_latency(data: dict[str, Any]) -> None:
    """Check a record of serving latency."""
    rate = acceptance_rate(data["accepted"], data["settings"]["max_speculation_length"])
    rate = min(max(rate, 1e-3), 1 - 1e-3)
    for trial, problem, plan in _planned(data):
        assert problem.mechanism == trial["label"]
        assert problem.acceptance_rate == rate
        measured_form = serving_latency.measured_form(problem, data)
        for side in ("draft", "verify"):
            said, again = (
                getattr(one, f"{side}_runtime").passes.seconds for one in (problem, measured_form)
            )
            np.testing.assert_allclose(said, again, rtol=1e-6)
            _check_table(data, side, said)
        assert (problem.rounds, measured_form.rounds) == ("slowest", "slowest")
        fitted = serving_latency.fitted_form(problem, data["passes"])
        again = serving_latency.predict(problem, fitted, plan, data["passes"])
        for name, numbers in again.items():
            assert trial["predicted"][name] == pytest.approx(numbers, rel=1e-5)
        for measured in trial["measured"]:
            _check_run(problem, plan, measured)


def _check_table(data: dict[str, Any], side: str, seconds: Any) -> None:
    """Check that a table's times are measured ones, within what makes them rise with the work."""
    measured = [*data["passes"][side]["seconds_median"], *data["rest"][side]["seconds_median"]]
    assert np.median(np.abs(np.log(np.divide(seconds, measured)))) < TABLE_MOVED


def check_continuous_serving(data: dict[str, Any]) -> None:
    """Check a record of continuous serving and of fixed batches of the same tasks."""
    rate = acceptance_rate(data["accepted"], data["settings"]["max_speculation_length"])
    for trial, problem, plan in _planned(data):
        assert problem.mechanism == trial["label"]
        assert problem.acceptance_rate == min(max(rate, 1e-3), 1 - 1e-3)
        assert trial["predicted"]["model"]["total_seconds"] == pytest.approx(
            problem.evaluate(plan).objective, rel=1e-9
        )
        batches = (plan.phases[0] if problem.kind == "continuous-serving" else plan).batches
        for measured in trial["measured"]:
            verify = np.array(measured["verify"])
            assert (verify[:, 0] == 1).sum() == len(batches) and sum(measured["steps"]) == len(
                verify
            )
            _check_seconds(problem.mechanism_of(plan), measured)
            assert (
                problem.mechanism == "autoregressive"
                or 0 < measured["accepted"] < measured["drafted"]
            )


def _check_seconds(mechanism: Any, measured: dict[str, Any]) -> None:
    """Check that all is verified between upload and end, and the seconds without disturbance."""
    verify = np.array(measured["verify"])
    assert verify[:, 3].max() <= measured["total_seconds"]
    assert measured["communication_seconds"] <= verify[:, 2].min()
    undisturbed = undisturbed_seconds(measured, mechanism)
    assert measured["undisturbed_seconds"] == pytest.approx(undisturbed, abs=1e-3)


def _check_run(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, measured: dict[str, Any]
) -> None:
    stages = {side: np.array(measured[side]).reshape(-1, 5) for side in ("draft", "verify")}
    for number, steps in enumerate(measured["steps"]):
        assert (stages["verify"][:, 1] == number).sum() == steps
    _check_seconds(problem.mechanism_of(plan), measured)
    assert measured["accepted"] <= measured["drafted"]
    terms = explain(problem, plan, measured)
    assert terms.total == pytest.approx(
        measured["total_seconds"] - problem.evaluate(plan).objective, abs=1e-6
    )
    assert terms.between >= -1e-3  # nothing overlaps that the model says cannot


def check_prompt_chunking(data: dict[str, Any]) -> None:
    """Check a record of prompt chunking."""
    layers = data["layers"]
    sizes = np.array(layers["tokens"], dtype=np.float64)
    for trial, problem, plan in _planned(data):
        assert trial["predicted"]["model"]["first_token_seconds"] == pytest.approx(
            problem.evaluate(plan).objective
        )
        fitted = fit_cloud_delay(sizes, layers["middle"], knots=sizes).cloud_delay
        np.testing.assert_allclose(problem.cloud_delay.seconds, fitted.seconds, rtol=1e-6)
        for measured in trial["measured"]:
            device, cloud = np.array(measured["device"]), np.array(measured["cloud"])
            assert len(device) == len(cloud) == len(plan.chunks)
            uploads = plan.chunks * problem.bytes_per_token / problem.uplink_bytes_per_second
            least = problem.message_overhead_seconds + uploads + problem.link_latency_seconds
            assert (cloud[:, 0] >= device[:, 1] + least - ROUNDED).all()
            back = problem.link_latency_seconds + uploads[-1] * (
                problem.uplink_bytes_per_second / problem.downlink_bytes_per_second
            )
            assert measured["first_token_seconds"] >= cloud[-1, 1] + back - ROUNDED


def check_draft_control(data: dict[str, Any]) -> None:
    """Check a record of draft control."""
    length = data["settings"]["max_draft_length"]
    rates = []
    for resolution in data["settings"]["resolutions"]:
        known = [one for one in data["known"] if one["resolution"] == resolution]
        looked = sum(min(count + 1, one["length"]) for one in known for count in one["accepted"])
        rates.append(sum(sum(one["accepted"]) for one in known) / looked)
    rounds = {
        drafted: [one for one in data["known"] if one["length"] == drafted]
        for drafted in range(length + 1)
    }
    verify = [
        np.mean(
            [
                a - b
                for one in alike
                for a, b in zip(one["seconds"], one["draft_seconds"], strict=True)
            ]
        )
        for alike in rounds.values()
    ]
    for trial, problem, plan in _planned(data):
        states = data["states"][trial["scene"]]
        assert all(
            state.acceptance_rates.tolist() == pytest.approx(rates) for state in problem.states
        )
        assert problem.verify_by_length.tolist() == pytest.approx(verify)
        for predictor, numbers in draft_control.predict(problem, plan, states).items():
            assert trial["predicted"][predictor] == pytest.approx(numbers)
        lengths = np.array([plan.policy[state].draft_length for state in states])
        for measured in trial["measured"]:
            accepted, seconds = np.array(measured["accepted"]), np.array(measured["seconds"])
            assert (accepted <= lengths).all()
            # each round's seconds are kept to the microsecond
            whole = (accepted + 1).sum() / measured["tokens_per_second"]
            assert whole == pytest.approx(seconds.sum(), rel=1e-6, abs=0.5e-6 * len(seconds))
            busy = np.array(measured["draft_seconds"]) + np.array(measured["verify_seconds"])
            assert (seconds >= busy - 2 * ROUNDED).all()


def check_verification_batch(data: dict[str, Any]) -> None:
    """Check a record of verification batches."""
    for number, trial in enumerate(data["trials"]):
        requests = data["requests"][trial["scene"]]
        again = verification_batch.predict(requests, data, trial["methods"][0], trial["label"])
        assert trial["predicted"]["belief"] == pytest.approx(again)
        (method,), known = trial["methods"], verification_batch.known_to(trial["label"], data)
        ragged = verification_batch.between(data)
        assert len(ragged["seconds"]) == data["settings"]["between"] * sum(
            len(one["measured"]) for one in data["trials"]
        )
        if number % PLAYED_AGAIN == 0:
            world = verification_batch.predict_padded(
                requests, ragged, method, known, data["settings"]["seed"]
            )
            assert trial["predicted"]["model"] == pytest.approx(world, rel=1e-5)
        for measured in trial["measured"]:
            assert measured["busy_seconds"] == pytest.approx(
                sum(one["seconds"] for one in measured["batches"]), abs=1e-3
            )
            served = [request for one in measured["batches"] for request in one["requests"]]
            assert len(served) == len(set(served))
            tokens = sum(
                requests["expected_tokens"][request]
                for one in measured["batches"]
                for request in one["requests"]
                if requests["deadline_seconds"][request] >= one["end"]
            )
            assert measured["tokens_on_time"] == pytest.approx(tokens, abs=1e-5)


def check_fair_goodput(data: dict[str, Any]) -> None:
    """Check a record of fair goodput."""
    for trial, problem, plan in _planned(data):
        again = fair_goodput.problem_of(data["known"], problem.budget_tokens)
        assert problem.acceptance_rates.tolist() == pytest.approx(again.acceptance_rates.tolist())
        assert trial["predicted"]["model"] == pytest.approx(
            fair_goodput.worth(problem.realised(plan.schedule)[0])
        )
        rounds = np.array(fair_goodput.rounds_of(plan, data["settings"]["rounds"]))
        for measured in trial["measured"]:
            accepted = np.array(measured["accepted"])
            assert (accepted <= rounds).all()
            for name, value in fair_goodput.worth(accepted.mean(axis=0) + 1.0).items():
                assert measured[name] == pytest.approx(value, abs=1e-5)


def check_placement(data: dict[str, Any]) -> None:
    """Check a record of places to draft."""
    settings = parse(placement.Settings, data["settings"], "settings")
    replayed = {one["draft_tokens"]: one["accepted"] for one in data["replayed"]}
    factor = placement.pace(data)
    assert 0.2 < factor < 5.0
    for trial, problem, plan in _planned(data):
        clients, length = trial["clients"], trial["way"]["draft_tokens"]
        trip = trial["round_trip_seconds"]
        again, later = (
            placement.problem_of(data, settings, clients, trip, one) for one in (1.0, factor)
        )
        for name, one in (("belief", problem), ("belief", again), ("model", later)):
            predicted = trial["predicted"][name]["tokens_per_second"]
            assert predicted == pytest.approx(one.evaluate(plan).objective, rel=1e-5)
        for number, measured in enumerate(trial["measured"]):
            mine = slice(number * settings.prompts, (number + 1) * settings.prompts)
            tokens, seconds = np.sum(measured["served"], axis=0)
            whole = (
                clients * tokens / measured["tokens_per_second"]
            )  # seconds are kept to the microsecond
            assert whole == pytest.approx(seconds, rel=1e-6, abs=0.5e-6 * len(measured["served"]))
            for counts, (made, _) in zip(measured["accepted"], measured["served"], strict=True):
                assert made == sum(counts) + len(counts) and max(counts, default=0) <= length
            for turn, sequences, new, _, whole, drafting in measured["passes"]:
                assert sequences <= clients and new == sequences * (length + 1)
                assert 0.0 <= drafting < whole and turn < len(measured["served"]) / clients
            if clients > 1 and trial["way"]["place"] == "device" and not measured["differences"]:
                for counts, alone in zip(measured["accepted"], replayed[length][mine], strict=True):
                    assert counts[: len(alone)] == alone[: len(counts)]


CHECKS = {
    "placement": check_placement,
    "serving-latency": check_serving_latency,
    "continuous-serving": check_continuous_serving,
    "prompt-chunking": check_prompt_chunking,
    "draft-control": check_draft_control,
    "verification-batch": check_verification_batch,
    "fair-goodput": check_fair_goodput,
}
