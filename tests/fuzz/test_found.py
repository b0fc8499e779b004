"""What fuzzing has found in models and the command line, each refused by name since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.input_files import LOG
from fuzz.outcome import check_refusal

from specopt import (
    InvalidInput,
    ServingLatencyPlan,
    ServingLatencyProblem,
    generate,
)
from specopt.commands.cli import run


def serving(**changes: Any) -> dict[str, Any]:
    """Return a small problem file of serving latency with some fields replaced."""
    return generate("serving-latency/paper-1", tasks=2, max_output=8).to_dict() | changes


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (serving(name="\ud800"), "an unpaired surrogate"),
        (serving(**{"\ud800": 1}), "an unpaired surrogate"),
        (serving(**{"a\r\nb": 1}), "a\\r\\nb': unknown field"),
        (serving(snr=[3e-308, 1.0]), "snr[0]: expected an upload"),
        (
            generate("draft-control/alternating").to_dict()
            | {"transition": [[-(10**400), 1.0], [1.0, 0.0]]},
            "transition[0]: expected probabilities",
        ),
    ],
)
def test_refused_by_name(
    data: dict[str, Any], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that each file is refused with one line that says what is wrong."""
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(data))
    code = run(["solve", str(path), "--json"])
    out, err = capfd.readouterr()
    check_refusal(code, out, err)
    assert words in err


def test_python_refuses_half_surrogates() -> None:
    """Tests that problems built in Python refuse names of fields that files refuse."""
    with pytest.raises(InvalidInput, match="expected a Unicode string"):
        ServingLatencyProblem.from_dict(serving(**{"\ud800": 1}))


def test_a_share_so_small_that_its_upload_never_ends_is_a_defect() -> None:
    """Tests that the judge refuses shares that would overflow, and takes small ones."""
    problem = ServingLatencyProblem.from_dict(serving())
    plans = [
        ServingLatencyPlan(
            speculation_length=1, batches=((0, 1),), bandwidth_share=np.array([share, 0.5])
        )
        for share in (5e-324, 1e-100)
    ]
    assert [bool(problem.violations(plan)) for plan in plans] == [True, False]
    assert problem.evaluate(plans[1]).objective > 1e90
    with pytest.raises(InvalidInput, match="bandwidth_share"):
        problem.evaluate(plans[0])


def test_features_that_overflow_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that a log of drafts with a feature whose square overflows is refused by line and
    column.
    """
    (tmp_path / "log.csv").write_text(LOG.replace("0.300,1", "1e308,1", 1))
    times = ["--draft-seconds", "0.001", "--round-seconds", "0.03"]
    code = run(["fit-predictor", str(tmp_path / "log.csv"), *times])
    out, err = capfd.readouterr()
    check_refusal(code, out, err)
    assert "margin" in err and "a number of size <= 1e+100" in err
