"""Fitted runtimes: the form chosen, errors, limits, warnings, and what cannot be fitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specopt import InvalidInput
from specopt.instances.runtimes.fit import RuntimeFit, fit_runtime
from specopt.instances.runtimes.forms import FORMS, Form
from specopt.instances.runtimes.measured import MeasuredRuntime
from specopt.instances.runtimes.table import TableColumns, read_runtime_table
from specopt.instances.runtimes.validation import CrossValidation, choose, fit_metrics, widest
from specopt.instances.runtimes.work import work_of
from specopt.models.fields import Floats
from specopt.models.pass_time import Which, pass_time

BATCHES = ("batch_new_tokens", "batch_interactions", "batch_cached_tokens")
WHICH: tuple[Which, ...] = ("lower", "fitted", "upper")
LINE = (2e-4, 0.03)
ROOFLINE = ((1e-5, 0.04), (2e-4, 0.02))
X = np.array([1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640])


def fitted(path: Path, x: Any, seconds: Any, form: str = "auto", **options: Any) -> RuntimeFit:
    """Write a table of tokens and seconds, read and fit it."""
    file = path / "table.csv"
    file.write_text(
        "tokens,seconds\n" + "".join(f"{a},{float(b)!r}\n" for a, b in zip(x, seconds, strict=True))
    )
    table = read_runtime_table(file, TableColumns(x=("tokens",), y=("seconds",)))
    return fit_runtime(table, work_of(table), form, **options)


def line(x: Any) -> Any:
    """Return the true line."""
    return LINE[0] * np.asarray(x) + LINE[1]


def roofline(x: Any) -> Any:
    """Return the true maximum of two lines."""
    return np.max([a * np.asarray(x) + c for a, c in ROOFLINE], axis=0)


@pytest.mark.parametrize("errors", ["absolute", "relative"])
def test_the_right_form_is_chosen(tmp_path: Path, errors: str) -> None:
    """Tests that the simplest form that is true is chosen, exact times give it back, and the reason
    is told.
    """
    found = fitted(tmp_path, X, line(X), errors=errors)
    assert found.form.name == "linear"
    assert found.coefficients[0] == pytest.approx(LINE, rel=1e-9)
    assert found.metrics.r2 == pytest.approx(1.0)
    assert found.metrics.mape < 1e-9
    assert found.warnings == ()
    found = fitted(tmp_path, X, roofline(X), errors=errors)
    assert found.form.name == "roofline"
    assert found.coefficients == pytest.approx(np.array(ROOFLINE), rel=1e-9)
    assert found.cross_validation is not None
    assert (
        "roofline: the form with the smallest error; MAPE on held-out inputs: linear"
        in found.cross_validation.reason
    )
    noisy = line(X) * np.random.default_rng(1).uniform(0.97, 1.03, len(X))
    assert fitted(tmp_path, X, noisy, errors=errors).form.name == "linear"


@pytest.mark.parametrize(("errors", "name"), [((0.10, 0.04), "linear"), ((0.08, 0.14), "roofline")])
def test_a_simpler_form_may_be_worse_by_chance(errors: tuple[float, float], name: str) -> None:
    """Tests that a line is taken if it is worse no more than parts differ: 2 points of 6, not 6 of
    0.
    """
    candidates: dict[Form, Floats] = {
        FORMS[form]: np.ones((2, 1)) for form in ("linear", "roofline")
    }
    validation = CrossValidation(
        folds=2, mape={"linear": errors, "roofline": (0.02, 0.08)}, misfit={}
    )
    assert choose(candidates, validation)[0].name == name


def test_a_line_that_is_off_is_told(tmp_path: Path) -> None:
    """Tests that a line off by more than 10 % says where, and that another form is better; and that
    9 % is fine.
    """
    found = fitted(tmp_path, X, roofline(X), "linear")
    assert found.form.name == "linear"
    first, second = found.warnings
    worst = int(np.argmax(np.abs(found.relative_errors)))
    assert "the linear form is off by more than 10% in" in first
    assert f"at tokens = {X[worst]} (line {worst + 2})" in first
    assert second.startswith("the roofline form predicts held-out inputs better")
    bent = line(X)
    bent[3] *= 1.09
    assert fitted(tmp_path, X, bent, "linear").warnings == ()


def test_additive_is_the_fit_of_batches(tmp_path: Path) -> None:
    """Tests that the additive form is ordinary least squares where all are positive, taken where it
    is true, and the same from the sums that measuring batches writes.
    """
    rng = np.random.default_rng(0)
    new = rng.integers(1, 400, 60)
    cached = rng.integers(0, 2000, 60)
    features = np.column_stack([new, (cached + new) * new, cached]).astype(float)
    seconds = (features @ [3e-5, 3e-8, 5e-6] + 0.015) * rng.uniform(0.99, 1.01, 60)
    file = tmp_path / "table.csv"
    rows = zip(new, cached, seconds, strict=True)
    file.write_text("new,cached,seconds\n" + "".join(f"{a},{b},{float(c)!r}\n" for a, b, c in rows))
    table = read_runtime_table(file, TableColumns(x=("new",), y=("seconds",), cached="cached"))
    found = fit_runtime(table, work_of(table))
    assert found.form.name == "additive" and found.seed == 0
    expected = np.linalg.lstsq(np.column_stack([features, np.ones(60)]), seconds, rcond=None)[0]
    assert found.coefficients == pytest.approx(expected, rel=1e-8)
    assert found.estimator.seconds(new[:1], cached[:1]) == pytest.approx(found.predicted_seconds[0])
    assert set(found.to_dict()["estimator"]) == set(found.to_dict()["lower"])
    with pytest.raises(InvalidInput, match="runtime: expected a fit against operations"):
        _ = found.runtime
    rows = zip(*features.T, seconds, strict=True)
    lines = [",".join(map(repr, map(float, row))) for row in rows]
    file.write_text("\n".join([",".join((*BATCHES, "seconds")), *lines]))
    table = read_runtime_table(file, TableColumns(x=BATCHES, y=("seconds",)))
    again = fit_runtime(table, work_of(table), "additive")
    assert again.coefficients == pytest.approx(found.coefficients)


def test_the_spread_of_measured_passes(tmp_path: Path) -> None:
    """Tests that a table keeps how far its quantiles are apart, and 0 where they are crossed."""
    file = tmp_path / "table.csv"
    file.write_text("new,seconds\n1,0.1\n2,0.2\n4,0.3\n")
    table = read_runtime_table(file, TableColumns(x=("new",), y=("seconds",)))
    found = MeasuredRuntime.from_table(
        table, (np.array([0.05, 0.1, 0.35]), np.array([0.15, 0.4, 0.3]))
    )
    assert found.passes.spread == pytest.approx([0.1, 0.3, 0.0])
    assert MeasuredRuntime.from_table(table).passes.spread is None


def test_metrics_by_hand() -> None:
    """Tests that the errors of four predictions are those computed by hand."""
    found = fit_metrics(np.array([1.0, 3.0, 3.0, 8.0]), np.array([1.0, 2.0, 4.0, 8.0]))
    assert found.mape == pytest.approx((0.5 + 0.25) / 4)
    assert found.rmse_seconds == pytest.approx(np.sqrt(0.5))
    assert found.mae_seconds == 0.5
    assert (found.max_error_seconds, found.max_relative_error, found.samples) == (1.0, 0.5, 4)
    assert found.r2 == pytest.approx(1.0 - 2.0 / 28.75)
    assert fit_metrics(np.ones(3), np.ones(3)).r2 is None
    assert widest([(0.1, 0.2), (0.05, 0.3)]) == (0.0, 0.3) and widest(
        [(-0.2, -0.1), (-0.3, -0.2)]
    ) == (-0.3, 0.0)


def test_the_file_says_everything(tmp_path: Path) -> None:
    """Tests that a fit's content is JSON that the pass time reads, limits included."""
    noisy = roofline(X) * np.random.default_rng(1).uniform(0.97, 1.03, len(X))
    data = json.loads(json.dumps(fitted(tmp_path, X, noisy).to_dict(), allow_nan=False))
    assert [data["form"], data["unit"]] == ["roofline", "tokens"]
    assert data["metrics"]["samples"] == len(X)
    assert (
        data["cross_validation"]["mape"]["roofline"]["mean"]
        < data["cross_validation"]["mape"]["linear"]["mean"]
    )
    time = pass_time(data, "fit", decoder=None, all_logits=True)
    assert time.has_limits
    low, fit, high = (time.seconds(X, np.array(1.0), np.array(0.0), which) for which in WHICH)
    assert (low < fit).all()
    assert (fit < high).all()
    assert (low <= noisy).all()
    assert (noisy <= high).all()
    assert time.covers(X, np.array(1.0), np.array(0.0)).all()
    assert not time.covers(np.array([0.5, 2.0]) * X[[0, -1]], np.array(1.0), np.array(0.0)).any()


def test_wrong_units_are_told(tmp_path: Path) -> None:
    """Tests that a speed that no device has, and times that do not grow, are told."""
    assert (
        "is implausible for a device" in fitted(tmp_path, X * 10**9, line(X), "linear").warnings[0]
    )
    assert "do not grow with the work" in " ".join(fitted(tmp_path, X, 1.0 / X, "linear").warnings)


@pytest.mark.parametrize(
    ("rows", "form", "message"),
    [
        (1, "auto", r"expected at least 2 distinct inputs, got 1 \(from 1 rows\)"),
        (1, "linear", "form: linear: expected at least 2 distinct inputs"),
        (4, "roofline", "form: roofline: expected at least 5 distinct inputs"),
        (4, "additive", "form: additive: expected at least 5 distinct inputs"),
        (8, "additive", "rows that distinguish the three features .* that are linearly dependent"),
        (8, "cubic", "form: expected one of auto, linear, roofline, additive, got 'cubic'"),
    ],
)
def test_what_cannot_be_fitted(tmp_path: Path, rows: int, form: str, message: str) -> None:
    """Tests that too few different inputs, or no such form, are refused."""
    with pytest.raises(InvalidInput, match=message):
        fitted(tmp_path, X[:rows], line(X[:rows]), form)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"errors": "squared"}, "errors: expected one of absolute, relative"),
        ({"folds": 1}, "folds: expected an integer from 2"),
        ({"seed": -1}, "seed: expected"),
        ({"level": 1.0}, "level: expected a number in \\(0, 1\\)"),
        ({"form": "linear", "flat": True}, "flat: expected the roofline form"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Tests that options outside their domain are refused by name."""
    with pytest.raises(InvalidInput, match=message):
        fitted(tmp_path, X, line(X), **options)


def test_few_inputs(tmp_path: Path) -> None:
    """Tests that two inputs give a line without cross-validation, and equal times a constant."""
    found = fitted(tmp_path, [1, 10], [1.0, 1.0])
    assert found.form.name == "linear"
    assert found.cross_validation is None
    assert found.coefficients[0] == pytest.approx([0.0, 1.0])
    assert found.metrics.r2 is None
    json.dumps(found.to_dict(), allow_nan=False)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.floats(0, 1e30, allow_subnormal=False), st.floats(1e-12, 1e9)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["auto", "linear", "roofline"]),
    st.sampled_from(["absolute", "relative"]),
)
def test_any_numbers_fit_or_are_refused(
    tmp_path: Path, rows: list[tuple[float, float]], form: str, errors: str
) -> None:
    """Tests that any numbers that a table may hold give a finite fit with coefficients >= 0, or are
    refused.
    """
    try:
        found = fitted(
            tmp_path, [repr(x) for x, _ in rows], [y for _, y in rows], form, errors=errors
        )
    except InvalidInput as error:
        assert "\n" not in str(error)
        return
    for array in (found.lower, found.coefficients, found.upper):
        assert np.isfinite(array).all()
        assert (array >= 0.0).all()
    json.dumps(found.to_dict(), allow_nan=False)
