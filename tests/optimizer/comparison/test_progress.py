"""What a long comparison says on stderr while it runs."""

from __future__ import annotations

import time

import pytest

from specopt.commands.compare import _show
from specopt.comparison.compare import CompareProgress
from specopt.console.progress import end_progress


def test_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that without a terminal a line comes every ten seconds at most, and none of what has
    just begun.
    """
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    end_progress()
    for now, done in ((0.1, 0), (1.0, 2), (9.0, 3), (11.0, 4)):
        _show(
            CompareProgress(
                done=done, failed=1, total=6, seconds=now, seconds_left=None if done < 4 else 10.0
            )
        )
    end_progress()
    assert capsys.readouterr().err.splitlines() == [
        "2 of 6 cells, 1 failed, 1 s",
        "4 of 6 cells, 1 failed, 11 s, about 10 s left",
    ]
