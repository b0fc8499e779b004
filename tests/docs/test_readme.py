"""What README.md says can be done: its commands, links and size. Its Python example is a
doctest.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_it_is_short_and_links_to_what_exists() -> None:
    """Tests that it stays a page, and that every file that it links to is there."""
    assert len(README.encode()) <= 4_520
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_engine_example_runs() -> None:
    """Tests that the commands for an engine succeed where the README runs them, and print a
    configuration.
    """
    folder, *commands = re.findall(
        r"^(?:cd (\S+)|\S+/specopt (.*?))(?: +#.*)?$", README, re.MULTILINE
    )
    assert [command.split()[0] for _, command in commands] == ["tune", "plan"]
    for _, command in commands:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "specopt", *command.split()],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            cwd=ROOT / folder[0],
        )
        assert done.returncode == 0, done.stderr
        assert "num_speculative_tokens_per_batch_size" in done.stdout
