"""What a long comparison says on stderr while it runs."""

from __future__ import annotations

import time

import pytest

from specopt.comparison.compare import CompareProgress
from specopt.comparison.progress import comparison_progress


def test_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that without a terminal a line comes every ten seconds, and at the end of what took longer."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with comparison_progress() as show:
        for now, done in ((9.0, 1), (10.0, 2), (19.0, 3), (20.0, 4)):
            show(CompareProgress(done=done, failed=1, total=6, seconds=now, seconds_left=None if done < 4 else 10.0))
        show(CompareProgress(done=6, failed=1, total=6, seconds=21.0, seconds_left=0.0))
    with comparison_progress() as show:
        show(CompareProgress(done=6, failed=0, total=6, seconds=10.0, seconds_left=0.0))
    assert capsys.readouterr().err.splitlines() == [
        "2 of 6 cells, 1 failed, 10 s",
        "4 of 6 cells, 1 failed, 20 s, about 10 s left",
        "6 of 6 cells, 1 failed, 21 s, about 0 s left",
    ]
