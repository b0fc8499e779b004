"""The benchmarks run: no figure is asserted here, only that every one of them still measures
something.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parent.parent


def test_smoke_run(tmp_path: Path) -> None:
    """Tests that every benchmark runs on tiny inputs and that the table is written."""
    table = tmp_path / "table.md"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--smoke", "-o", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "| what | measured | target | |" in table.read_text()
