"""What is said of a predictor that was fitted to a log."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from specopt.views.fit import print_fitted


@pytest.mark.parametrize(
    ("belief", "best", "verdict"),
    [
        ((0.01, 0.05), "belief", "stopping by belief is faster than the best fixed window"),
        ((-0.01, 0.05), "belief", "no difference from the best fixed window is significant"),
        ((-0.01, 0.05), "fixed-window", "the best fixed window is the fastest"),
        ((-0.05, -0.01), "first-rejection", "the best fixed window is the fastest"),
    ],
)
def test_the_verdict_is_on_belief(belief: tuple[float, float], best: str, verdict: str) -> None:
    """Tests that belief is recommended where its interval is above the fixed window, whatever other
    rules gain.
    """
    rules = [
        {
            "method": name,
            "model": 9.0,
            "held_out": 9.0 if name == best else 8.0,
            "standard_error": 0.1,
            "gain": 0.0,
            "gain_interval": belief if name == "belief" else (-0.02, 0.02),
        }
        for name in ("belief", "first-rejection", "fixed-window")
    ]
    found = {
        "predictor": "logistic",
        "rounds": 90,
        "dropped": 0,
        "problem": {"max_draft_tokens": 4},
        "false_reject": 0.1,
        "false_accept": 0.2,
        "area": 0.7,
        "rules": rules,
    }
    out = StringIO()
    print_fitted(found, Console(file=out, width=100))
    assert verdict in out.getvalue().splitlines()[-1]
